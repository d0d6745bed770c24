"""What was set for plugins, named stores and those who oversee: whether each can be made of it. None is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealpipe.doctor.finding import Finding, doubtful, failed, fine, going_on
from sealpipe.doctor.installed import missing
from sealpipe.errors import PolicyError, SealpipeError, SettingError
from sealpipe.plugin import Outgoing
from sealpipe.registry.guard import pip_install
from sealpipe.registry.stores import PLUGIN

if TYPE_CHECKING:
    from sealpipe.registry import Registry
    from sealpipe.registry.catalog import Listed
    from sealpipe.registry.oversight import Overseer


def stores(registry: Registry) -> Iterator[Finding]:
    """Each named store, and each plugin for which something is set: its settings as a command would fill them."""
    listed = [each for each in registry.listing() if each.kind != "ci"]
    for name, store in registry.stores.items():
        of_it = [each for each in listed if each.info.name == store.plugin]
        if of_it:
            lacking = missing(of_it[0].info.needs)
            if lacking:
                what = f"{' and '.join(lacking)} is not installed"
                yield doubtful(f"store {name}", what, pip_install(of_it[0].info))
            yield from _filled(registry, f"store {name}", {name: of_it}, named=True)
        else:
            near = get_close_matches(store.plugin, [each.info.name for each in listed], 1)
            remedy = f"did you mean {near[0]}?" if near else "see `sealpipe plugins` for what there is"
            error = SettingError(f"its plugin {store.plugin[:40]} does not exist", remedy=remedy)
            yield failed(f"store {name}", error)
    for backend, of_it in _by_backend(listed).items():
        if backend in registry.config.get("plugins", {}) or _is_set(registry.environ, backend):
            by_name = {each.info.name: [each] for each in of_it}
            yield from _filled(registry, f"plugin {backend}", by_name, named=False)


def overseers(registry: Registry, load: Callable[[], tuple[Overseer, ...]]) -> Iterator[Finding]:
    """Policies and observers: every command of ours asks them first, so one that is wrong stops all."""
    found = load()
    for each in found:
        check = f"{each.name} (this machine's)" if each.enforced else each.name
        yield from going_on(check, partial(_overseer, registry, each, check))


def _overseer(registry: Registry, each: Overseer, check: str) -> Iterator[Finding]:
    """Whether it can be asked. Only the built-in policy is: it looks at its rules, and at nothing else."""
    if each.name == "policy":
        # Its refusal is no trouble: it has read its rules.
        with suppress(PolicyError):
            registry.check_outgoing([each], Outgoing("share", complete=False))
    file = each.table.get("file")
    if each.name == "audit" and (not isinstance(file, str) or not Path(file).is_absolute()):
        error = SettingError("it names no file by its absolute path", remedy='write file = "/..." into its table')
        yield failed(check, error)
        return
    if each.name == "audit" and not Path(str(file)).parent.is_dir():
        what = f"its file {file} cannot be written: there is no such folder"
        yield failed(check, SettingError(what, remedy="make the folder, or name another file in [audit]"))
        return
    yield fine(check, f"is asked or told{f' ({file})' if isinstance(file, str) else ''}")


def _by_backend(listed: list[Listed]) -> dict[str, list[Listed]]:
    found: dict[str, list[Listed]] = {}
    for each in listed:
        found.setdefault(each.info.backend or each.info.name, []).append(each)
    return found


def _is_set(environ: Mapping[str, str], backend: str) -> bool:
    prefix = f"{PLUGIN}{backend.upper().replace('-', '_')}__"
    return any(name.startswith(prefix) and value for name, value in environ.items())


def _filled(registry: Registry, check: str, by_name: Mapping[str, list[Listed]], *, named: bool) -> Iterator[Finding]:
    """One finding: the first error of any kind, or that all is well."""
    kinds = [(each.kind, name) for name, of_it in by_name.items() for each in of_it]
    made: list[Any] = []
    for kind, name in kinds:
        try:
            made.append(registry.settings(kind, name))
        except SettingError as error:
            lacks = not named and "lacks its setting" in error.message
            yield doubtful(check, error.message, error.remedy) if lacks else failed(check, error)
            return
        except SealpipeError as error:  # a package that is not there: this machine may not need it
            yield doubtful(check, error.message, error.remedy)
            return
    if any(each is not None for each in made):
        yield fine(check, "its settings can be used")
