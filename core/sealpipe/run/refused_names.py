"""Names that no variable of a command may have when its value comes from a store.

A person who can write to a store must not choose the code that runs here: by these names, a program
runs what the value says, or loads it from where the value points. Each row links the program's
documentation of them.

Names of files with credentials stand apart: a whole kubeconfig is a secret that users do keep in a
store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sealpipe.wildcards import matches_name


class Reader(NamedTuple):
    """A program, the names that it obeys (`wildcards.matches_name`), and their documentation.

    Our own page is a path from `docs/how-to`, where the table is shown.
    """

    name: str
    names: tuple[str, ...]
    docs: str
    ignores_case: bool = False

    def obeys(self, name: str) -> bool:
        """Return whether this program obeys a variable of that name."""
        text = name.lower() if self.ignores_case else name
        return any(matches_name(text, each) for each in self.names)


REFUSED: Final[Sequence[Reader]] = (
    Reader(
        "the dynamic loader",
        ("LD_*", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH"),
        "https://man7.org/linux/man-pages/man8/ld.so.8.html",
    ),
    Reader(
        "the dynamic loader of macOS",
        ("DYLD_*",),
        "https://developer.apple.com/library/archive/documentation/DeveloperTools/Conceptual/"
        "DynamicLibraries/000-Introduction/Introduction.html",
    ),
    Reader(
        "a shell",
        (
            "PATH", "HOME", "SHELL", "IFS", "ENV", "CDPATH", "BASH_ENV", "BASHOPTS", "SHELLOPTS",
            "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "INPUTRC", "MAILPATH", "FCEDIT",
            "BASH_LOADABLES_PATH",
        ),
        "https://www.gnu.org/software/bash/manual/html_node/Shell-Variables.html",
    ),
    Reader(
        "zsh",
        ("ZDOTDIR", "FPATH", "NULLCMD", "READNULLCMD"),
        "https://zsh.sourceforge.io/Doc/Release/Parameters.html",
    ),
    Reader(
        "git",
        (
            "GIT_ALLOW_PROTOCOL", "GIT_ASKPASS", "GIT_COMMON_DIR", "GIT_CONFIG*", "GIT_DIR",
            "GIT_EDITOR", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND",
            "GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_TEMPLATE_DIR", "GITPERLLIB",
            "EDITOR", "VISUAL", "PAGER", "XDG_CONFIG_HOME",
        ),
        "https://git-scm.com/docs/git#_environment_variables",
    ),
    Reader(
        "ssh",
        ("SSH_ASKPASS", "SSH_PKCS11_HELPER", "SSH_SK_HELPER", "SSH_SK_PROVIDER"),
        "https://man.openbsd.org/ssh-add#ENVIRONMENT",
    ),
    Reader(
        "make",
        (
            "MAKEFILES", "MAKEFLAGS", "GNUMAKEFLAGS", "MAKE", "MAKE_COMMAND", "MAKEOVERRIDES",
            "VPATH", "GPATH", "OUTPUT_OPTION", "AR", "AS", "CC", "CO", "CPP", "CTANGLE", "CWEAVE",
            "CXX", "FC", "GET", "LD", "LEX", "LINT", "M2C", "MAKEINFO", "OBJC", "PC", "RM",
            "TANGLE", "TEX", "TEXI2DVI", "WEAVE", "YACC", "ARFLAGS", "ASFLAGS", "CFLAGS", "COFLAGS",
            "CPPFLAGS", "CXXFLAGS", "FFLAGS", "GFLAGS", "LDFLAGS", "LDLIBS", "LFLAGS", "LINTFLAGS",
            "LOADLIBES", "PFLAGS", "RFLAGS", "TARGET_ARCH", "YFLAGS",
        ),
        "https://www.gnu.org/software/make/manual/html_node/Implicit-Variables.html",
    ),
    Reader(
        "gcc",
        (
            "COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH",
            "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH",
        ),
        "https://gcc.gnu.org/onlinedocs/gcc/Environment-Variables.html",
    ),
    Reader("tar", ("TAR_OPTIONS",),
        "https://www.gnu.org/software/tar/manual/html_node/using-tar-options.html"),
    Reader(
        "less",
        (
            "LESS", "LESSOPEN", "LESSCLOSE", "LESSECHO", "LESSEDIT", "LESSGLOBALTAGS", "LESSKEY",
            "LESSKEYIN", "LESSKEYIN_SYSTEM", "LESSKEY_CONTENT", "LESSKEY_SYSTEM", "LESSMETACHARS",
            "LESSMETAESCAPE", "MORE",
        ),
        "https://man7.org/linux/man-pages/man1/less.1.html",
    ),
    Reader(
        "Python",
        (
            "PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH",
            "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "PYTHONSTARTUP", "PYTHONUSERBASE",
            "PYTHONWARNINGS", "PYTHON_PRESITE", "BROWSER",
        ),
        "https://docs.python.org/3/using/cmdline.html#environment-variables",
    ),
    Reader(
        "perl",
        ("PERL5LIB", "PERLLIB", "PERL5OPT", "PERL5DB", "PERLDB_OPTS", "PERL5SHELL"),
        "https://perldoc.perl.org/perlrun#ENVIRONMENT",
    ),
    Reader(
        "ruby",
        (
            "RUBYLIB", "RUBYLIB_PREFIX", "RUBYOPT", "RUBYPATH", "RUBYSHELL", "GEM_HOME", "GEM_PATH",
            "IRBRC", "BUNDLE_GEMFILE",
        ),
        "https://manpages.debian.org/bookworm/ruby/ruby.1.en.html",
    ),
    Reader(
        "node",
        ("NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE"),
        "https://nodejs.org/api/cli.html#environment-variables",
    ),
    # Every setting of npm, for too many of them name a program, a script or a place that code comes
    # from.
    Reader("npm", ("npm_config_*",), "https://docs.npmjs.com/cli/using-npm/config",
        ignores_case=True),
    Reader(
        "java",
        ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVAC_OPTIONS", "CLASSPATH",
            "JAVA_HOME"),
        "https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html",
    ),
    Reader("Lua", ("LUA_INIT*", "LUA_PATH*", "LUA_CPATH*"),
        "https://www.lua.org/manual/5.4/manual.html#7"),
    Reader(
        ".NET",
        ("DOTNET_STARTUP_HOOKS",),
        "https://github.com/dotnet/runtime/blob/main/docs/design/features/host-startup-hook.md",
    ),
    Reader(
        "PHP", ("PHPRC", "PHP_INI_SCAN_DIR"), "https://www.php.net/manual/en/configuration.file.php"
    ),
    Reader("Erlang", ("ERL_AFLAGS", "ERL_FLAGS", "ERL_ZFLAGS"),
        "https://www.erlang.org/doc/apps/erts/erl_cmd.html"),
    Reader(
        "cargo",
        (
            "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "CARGO_BUILD_*",
            "CARGO_TARGET_*", "CARGO_ENCODED_RUSTFLAGS", "CARGO_HOME",
        ),
        "https://doc.rust-lang.org/cargo/reference/environment-variables.html",
    ),
    Reader(
        "rustup",
        ("RUSTUP_DIST_SERVER", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTUP_UPDATE_ROOT"),
        "https://rust-lang.github.io/rustup/environment-variables.html",
    ),
    Reader("go", ("GOFLAGS",), "https://pkg.go.dev/cmd/go#hdr-Environment_variables"),
    Reader("rsync", ("RSYNC_RSH", "RSYNC_CONNECT_PROG"),
        "https://man7.org/linux/man-pages/man1/rsync.1.html"),
    Reader(
        "psql",
        ("PSQLRC", "PSQL_EDITOR", "PSQL_PAGER"),
        "https://www.postgresql.org/docs/current/app-psql.html#APP-PSQL-ENVIRONMENT",
    ),
    Reader("vim", ("VIMINIT", "EXINIT", "VIMRUNTIME"), "https://vimhelp.org/starting.txt.html"),
    Reader("R", ("R_ENVIRON", "R_ENVIRON_USER", "R_PROFILE", "R_PROFILE_USER"),
        "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html"),
    Reader("Mercurial", ("HGRCPATH", "HGEDITOR", "HGMERGE"),
        "https://repo.mercurial-scm.org/hg/help/environment"),
    Reader("wget", ("WGETRC",),
        "https://www.gnu.org/software/wget/manual/html_node/Wgetrc-Location.html"),
    Reader("screen", ("SCREENRC", "SYSSCREENRC"),
        "https://www.gnu.org/software/screen/manual/screen.html#Startup-Files"),
    Reader(
        "OpenSSL",
        ("OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES"),
        "https://docs.openssl.org/3.0/man7/openssl-env/",
    ),
    Reader("sealpipe", ("SEALPIPE_*",), "../reference/settings.md"),
)  # fmt: skip

CREDENTIAL_FILES: Final = (
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "DOCKER_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG",
)  # fmt: skip
"""Names that are not refused, though what they name may tell a program to run another: it is what a
store is for.
"""


def find_reader(name: str) -> str | None:
    """Return what would obey a variable of this name, so that no secret may have it, or None."""
    return next((reader.name for reader in REFUSED if reader.obeys(name)), None)
