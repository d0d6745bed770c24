"""`sealpipe completion`, and the scripts that it prints. `completion.py` answers them.

Each asks the `sealpipe` on PATH, never a program that is only typed (`./sealpipe` in a checkout).
The line is handed over in the environment: nobody else can read it there. An answer is a line with
its kind, then a value in each line, with a tab and its help. Nothing of it is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from sealpipe.cli import render
from sealpipe.cli.command import Command

_BASH: Final = r"""_sealpipe_completion() {
    local kind value
    COMPREPLY=()
    {
        IFS= read -r kind || return 0
        while IFS= read -r value; do
            COMPREPLY+=("${value%%$'\t'*}")
        done
    } < <(_SEALPIPE_COMPLETE=bash _SEALPIPE_COMPLETE_LINE="${COMP_LINE:0:COMP_POINT}" \
        _SEALPIPE_COMPLETE_WORD="$2" command sealpipe 2>/dev/null)
    case $kind in
        file) compopt -o default 2>/dev/null ;;
        dir) compopt -o dirnames 2>/dev/null ;;
        open) compopt -o nospace 2>/dev/null ;;
        names) compopt -o filenames 2>/dev/null ;;
    esac
}
complete -o nosort -F _sealpipe_completion sealpipe 2>/dev/null ||
    complete -F _sealpipe_completion sealpipe
"""

_ZSH: Final = r"""#compdef sealpipe
_sealpipe_completion() {
    local -a answer values shown
    local kind each text
    answer=("${(@f)$(_SEALPIPE_COMPLETE=zsh _SEALPIPE_COMPLETE_LINE="${(j: :)words[1,CURRENT]}" \
        command sealpipe 2>/dev/null)}")
    kind=$answer[1]
    case $kind in
        file) _files; return ;;
        dir) _files -/; return ;;
    esac
    for each in "${(@)answer[2,-1]}"; do
        text="${each#*$'\t'}"
        values+=("${each%%$'\t'*}")
        shown+=("${each%%$'\t'*}${text:+  -- $text}")
    done
    (( $#values )) || return 1
    if [[ $kind == open ]]; then
        compadd -S '' -V sealpipe -l -d shown -a values
    else
        compadd -V sealpipe -l -d shown -a values
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _sealpipe_completion "$@"
else
    compdef _sealpipe_completion sealpipe
fi
"""

_FISH: Final = r"""function _sealpipe_completion
    set -l answer (_SEALPIPE_COMPLETE=fish _SEALPIPE_COMPLETE_LINE=(commandline -cp) \
        command sealpipe 2>/dev/null)
    switch "$answer[1]"
        case file
            __fish_complete_path (commandline -ct)
        case dir
            __fish_complete_directories (commandline -ct)
        case '*'
            for each in $answer[2..-1]
                printf '%s\n' $each
            end
    end
end
complete --command sealpipe --no-files --keep-order --arguments '(_sealpipe_completion)'
"""

SCRIPTS: Final[Mapping[str, str]] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""The script of each shell."""


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell completion script.

    For bash, add `eval "$(sealpipe completion bash)"` to ~/.bashrc; for zsh, the same with zsh to
    ~/.zshrc, after compinit; for fish, `sealpipe completion fish | source` to
    ~/.config/fish/config.fish.
    """
    render.print_result(SCRIPTS[shell])
