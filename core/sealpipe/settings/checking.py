"""Whether a value fits its setting, wherever it was given: what the command that takes it would say."""

from __future__ import annotations

from datetime import date, time
from typing import Final

from sealpipe.errors import SettingError, UsageError
from sealpipe.settings.setting import Setting

SWITCH: Final = frozenset({"1", "true", "t", "yes", "y", "on", "0", "false", "f", "no", "n", "off"})
"""What the environment and the config file may say for an option that takes no value."""


def check(setting: Setting, value: object, where: str) -> None:
    """Parse it as the setting does. SettingError names `where` it was given; an empty text counts as unset."""
    for text in _texts(setting, value):
        try:
            _one(setting, text)
        except UsageError as error:
            message, remedy = _without(text, error.message), error.remedy or f"mend {where}, or unset it"
        else:
            continue
        raise SettingError(f"{where}: {message}", remedy=remedy)


def _without(text: str, message: str) -> str:
    """A message without what it quotes of the value: a report is shown to others, and a value may be misplaced."""
    quoted = text[:20]
    for form in (repr(quoted), quoted):
        if message.startswith(form):
            message = f"the value{message.removeprefix(form)}"
    return "the value cannot be used" if len(quoted) > 3 and quoted in message else message


def _texts(setting: Setting, value: object) -> list[str]:
    """One text, or for a setting that may be repeated one a line, or each of a list."""
    given = value if isinstance(value, list) else [value]
    texts = [each.isoformat() if isinstance(each, date | time) else str(each) for each in given]
    if setting.multiple and not isinstance(value, list):
        texts = [line for text in texts for line in text.split("\n") if line.strip()]
    return [text for text in texts if text]


def _one(setting: Setting, text: str) -> None:
    # What is wrong is not repeated: where one of a few words belongs, a secret may stand.
    if setting.flag and text.strip().lower() not in SWITCH:
        raise UsageError("it switches something on or off", remedy="write true or false")
    if setting.choices and text not in setting.choices:
        raise UsageError(f"it is none of {', '.join(setting.choices)}", remedy="choose one of them")
    if not setting.flag and not setting.choices:
        setting.parse(text)
