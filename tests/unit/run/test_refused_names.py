"""Each name that is refused would run code: the program that obeys it is run with it, and `evil`
runs.

`evil` is what somebody who writes to the store would like to run: it leaves a file. A program that
is not on this machine is skipped by its name. What no test can show stands in `NOT_SHOWN`, with its
reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from sealpipe.errors import UsageError
from sealpipe.run.refused_names import CREDENTIAL_FILES, REFUSED, find_reader
from sealpipe.run.variables import parse_variable

NAMES = [name for reader in REFUSED for name in reader.names]

EVIL = '#!/bin/sh\n: > "$RAN"\n'
EVIL_C = """\
#include <stdlib.h>
__attribute__((constructor)) static void run(void) {
    unsetenv("LD_PRELOAD"); system(": > \\"$RAN\\"");
}
int sk_api_version(void) { return 0; }
"""
EVIL_JAVA = """\
public class Evil {
    static { try { new ProcessBuilder("./evil").start().waitFor(); } catch (Exception failed) { } }
    public static void main(String[] words) { }
}
"""
EVIL_PY = "import os; os.system('./evil')\n"
MODULES = f"python{sys.version_info[0]}.{sys.version_info[1]}"
COPIES = (
    "ls/ls", "git/git-zz", "template/hooks/post-checkout", "other/sub/run", "zsh/.zshenv",
    "functions/zz", "bin/as", "java/bin/java", "toolchain/bin/rustc",
    "rustup/toolchains/zz/bin/rustc",
)  # fmt: skip
"""Where `evil` lies under the name of something that a program runs."""
FILES: Mapping[str, str] = {
    "evil": EVIL,
    **dict.fromkeys(COPIES, EVIL),
    "evil.c": EVIL_C,
    "include/math.h": EVIL_C,
    "include/zz.h": "",
    "Evil.java": EVIL_JAVA,
    **dict.fromkeys(
        ("home/lib/{python}/encodings/__init__.py", "lib/{python}/encodings/__init__.py"), EVIL_PY
    ),
    "user/lib/{python}/site-packages/evil.pth": EVIL_PY,
    "module.py": "",
    "cache.py": """\
import importlib.util, os, py_compile, sys
sys.pycache_prefix = os.path.abspath("cache")
target = importlib.util.cache_from_source(os.path.abspath("module.py"))
os.makedirs(os.path.dirname(target))
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
py_compile.compile("evil.py", cfile=target, invalidation_mode=unchecked)
""",
    "gconv/gconv-modules": "module ZZ// INTERNAL zz 1\n",
    "php/php.ini": "auto_prepend_file=evil.php\n",
    "evil.php": "<?php system('./evil');",
    "x;": "",
    "a b": "",
    "a.c": "#include <math.h>\n#include <zz.h>\nint main(void) { return 0; }\n",
    "b.c": "int main(void) { return 0; }\n",
    "evil.mk": "found := $(shell ./evil)\n",
    "makefile": "all:\n\t@$(MAKE) --version\n",
    "evil.js": "require('child_process').execSync('./evil')\n",
    "evil.rb": "system('./evil')\n",
    "evil.pm": "system('./evil'); 1;\n",
    "evil.py": EVIL_PY,
    "lesskey": "#env\nLESSOPEN=|./evil %s\n",
    "inputrc": '"x": "./evil\\n"\n',
    "mail": "x\n",
    "GTAGS": "",
    "npmrc": "script-shell=./evil\n",
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"x": "true"}}',
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": "fn main() {}\n",
    "cargo/config.toml": "[build]\nrustc-wrapper = '{here}/evil'\n",
    "rustup/settings.toml": "version = '12'\ndefault_toolchain = 'zz'\n",
    "lua/zz.lua": "os.execute('./evil')\n",
    "serve.py": """\
import socket, subprocess, sys
with socket.socket(socket.AF_UNIX) as server:
    server.bind(".s.PGSQL.5432")
    server.listen()
    server.settimeout(10)
    client = subprocess.Popen(sys.argv[1:])
    connection, _ = server.accept()
    connection.recv(4096)
    connection.sendall(b"R\\0\\0\\0\\x08\\0\\0\\0\\0" b"Z\\0\\0\\0\\x05I")
    client.wait()
""",
    "psqlrc": "\\! ./evil\n",
    "evil.R": "system('./evil')\n",
    "Renviron": "R_PROFILE_USER={here}/evil.R\n",
    "hgrc": "[hooks]\npre-version = {here}/evil\n",
    "wgetrc": "use_askpass = {here}/evil\n",
    "help.sql": "\\?\n",
    "edit.sql": "\\e\n",
    "x.go": "package main\nfunc main() {}\n",
    "sub/run": "#!/bin/sh\n",
    "home/.gitconfig": "[alias]\nx = !./evil\n",
    "xdg/git/config": "[alias]\nx = !./evil\n",
    "perl/Git.pm": "system('./evil'); 1;\n",
    "perl/integer.pm": "system('./evil'); 1;\n",
    "python/json.py": EVIL_PY,
    "ruby/json.rb": "system('./evil')\n",
    "ruby/zz.rb": "system('./evil')\n",
    "gems/plugins/zz_plugin.rb": "system('./evil')\n",
    "node/zz/index.js": "require('child_process').execSync('./evil')\n",
    "openssl.cnf": (
        "openssl_conf=a\n[a]\nproviders=b\n[b]\nc=d\n[d]\nmodule={here}/evil.so\nactivate=1\n"
    ),
}
"""Files that the programs find in their working directory."""

SETUP: Mapping[str, str] = {
    "repo": """\
git init -q repo; cd repo; echo a > a; git add a
git config user.name x; git config user.email x@example.com; git commit -qm a; echo b > a
cp -r .git ../watched.git; git --git-dir=../watched.git config core.fsmonitor ../evil
""",
    "-yf key": "ssh-keygen -q -t ed25519 -N pass -f key",
    "gcc -c": "to=gcc/$(gcc -dumpmachine)/$(gcc -dumpversion); mkdir -p $to; cp evil $to/cc1",
}
"""What a command needs that cannot be written as a file, by a part of the command."""

LOADING = (
    "LD_PRELOAD", "GCONV_PATH", "BASH_LOADABLES_PATH", "SSH_SK_PROVIDER", "LIBRARY_PATH",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "LUA_CPATH", "OPENSSL_CONF",
    "OPENSSL_ENGINES", "OPENSSL_MODULES",
)  # fmt: skip
"""Names by which `evil` comes in as a library."""

PROGRAMS = frozenset({
    "cargo", "erl", "g++", "gcc", "gem", "git", "go", "iconv", "irb", "java", "javac", "less",
    "lesskey", "lua", "make", "mvn", "node", "npm", "openssl", "perl", "php", "psql", "rsync",
    "ruby", "rustup", "script", "ssh", "ssh-add", "ssh-agent", "ssh-keygen", "tar", "vim", "zsh",
    "hg", "R", "wget",
})  # fmt: skip


class Proof(NamedTuple):
    """What a store's value would be, the command that obeys it, and what else a user may have set.

    `{here}` is the working directory.
    """

    value: str
    command: str
    also: Mapping[str, str] = {}


def implicit(value: str, source: str, target: str) -> Proof:
    """A variable of one of make's own rules."""
    return Proof(
        value, f"mkdir -p $(dirname {source}); touch {source}; make -f /dev/null '{target}'"
    )


def typed(keys: str, command: str) -> str:
    """A command at a terminal, with keys that are typed there."""
    return f"(sleep 0.3; printf '{keys}') | script -qec '{command}' /dev/null"


RUSTUP = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", f"{Path.home()}/.rustup")}
"""Where rustup, if cargo is its, keeps the compilers."""
PYTHON = getattr(sys, "_base_executable", sys.executable)
"""Not a virtual environment's: that obeys fewer names."""
AT_PSQL = f"{PYTHON} serve.py psql -h /proc/self/cwd -U x -P pager=always"
"""psql, and as little of a server as it begins with."""
AT_BASH = "bash --norc -i"
AGENT = "-agentpath:{here}/evil.so"

PROOFS: Mapping[str, Proof] = {
    "LD_PRELOAD": Proof("{here}/evil.so", "true"),
    "GCONV_PATH": Proof("{here}/gconv", "echo x | iconv -f ZZ -t UTF-8"),
    # a shell
    "PATH": Proof("{here}/ls", "ls"),
    "HOME": Proof("{here}/home", "git x"),
    "SHELL": Proof("{here}/evil", "ssh -o ProxyCommand=true host.invalid"),
    "ENV": Proof("$(./evil)", "sh -i"),
    "CDPATH": Proof("{here}/other", "cd sub && ./run"),
    "BASH_ENV": Proof("{here}/evil", "bash -c true"),
    "PS0": Proof("$(./evil)", f"echo true | {AT_BASH}"),
    "PS1": Proof("$(./evil)", AT_BASH),
    "PS2": Proof("$(./evil)", rf"printf 'true \\\n x\n' | {AT_BASH}"),
    "PS4": Proof("$(./evil)", "zsh -o promptsubst -xfc true"),
    "PROMPT_COMMAND": Proof("./evil", AT_BASH),
    "INPUTRC": Proof("{here}/inputrc", typed(r"x\nexit\n", AT_BASH)),
    "MAILPATH": Proof(
        "{here}/mail?$(./evil)",
        ("(echo true; sleep 1.2; echo 'echo x >> mail'; sleep 1.2; echo true; echo true) | "
            f"{AT_BASH}"),
        {"MAILCHECK": "0"},
    ),
    "FCEDIT": Proof("./evil", rf"printf 'true\nfc\n' | {AT_BASH}"),
    "BASH_LOADABLES_PATH": Proof("{here}/modules", "bash -c 'enable -f zz.so zz'"),
    "ZDOTDIR": Proof("{here}/zsh", "zsh -c true"),
    "FPATH": Proof("{here}/functions", "zsh -fc 'autoload zz; zz'"),
    "NULLCMD": Proof("./evil", "zsh -fc '> out'"),
    "READNULLCMD": Proof("./evil", "zsh -fc '< mail'"),
    # git
    "GIT_ALLOW_PROTOCOL": Proof("ext", "git ls-remote ext::{here}/evil"),
    "GIT_ASKPASS": Proof("{here}/evil", "echo url=https://h.invalid | git credential fill"),
    "GIT_COMMON_DIR": Proof("{here}/watched.git", "git -C repo status"),
    "GIT_CONFIG_GLOBAL": Proof("{here}/home/.gitconfig", "git x"),
    "GIT_CONFIG_PARAMETERS": Proof("'alias.x=!./evil'", "git x"),
    "GIT_DIR": Proof("{here}/watched.git", "git -C repo status"),
    "GIT_EDITOR": Proof("{here}/evil", "git config -f config -e"),
    "GIT_EXEC_PATH": Proof("{here}/git", "git zz"),
    "GIT_EXTERNAL_DIFF": Proof("{here}/evil", "git -C repo diff"),
    "GIT_PAGER": Proof("{here}/evil", typed("", "git -C repo log")),
    "GIT_PROXY_COMMAND": Proof("{here}/evil", "git ls-remote git://h.invalid/x"),
    "GIT_SEQUENCE_EDITOR": Proof("{here}/evil", "git -C repo stash; git -C repo rebase -i --root"),
    "GIT_SSH": Proof("{here}/evil", "git ls-remote ssh://h.invalid/x"),
    "GIT_SSH_COMMAND": Proof("{here}/evil", "git ls-remote ssh://h.invalid/x"),
    "GIT_TEMPLATE_DIR": Proof("{here}/template", "git clone -q repo other-repo"),
    "EDITOR": Proof("{here}/evil", "git config -f config -e"),
    "VISUAL": Proof("{here}/evil", "git config -f config -e", {"TERM": "xterm"}),
    "PAGER": Proof("{here}/evil", typed("", "git -C repo log")),
    "XDG_CONFIG_HOME": Proof("{here}/xdg", "git x"),
    # ssh
    "SSH_ASKPASS": Proof("{here}/evil", "ssh-keygen -yf key", {"SSH_ASKPASS_REQUIRE": "force"}),
    "SSH_PKCS11_HELPER": Proof(
        "{here}/evil",
        "ssh-agent ssh-add -s $(gcc -print-file-name=libc.so.6)",
        {"SSH_ASKPASS": "true", "SSH_ASKPASS_REQUIRE": "force"},
    ),
    "SSH_SK_HELPER": Proof("{here}/evil", "ssh-keygen -q -t ecdsa-sk -N '' -f other"),
    "SSH_SK_PROVIDER": Proof("{here}/evil.so", "ssh-keygen -q -t ecdsa-sk -N '' -f other"),
    # make
    "MAKEFILES": Proof("evil.mk", "make"),
    "MAKEFLAGS": Proof(r"--eval=include\ evil.mk", "make"),
    "GNUMAKEFLAGS": Proof(r"--eval=include\ evil.mk", "make"),
    "MAKE": Proof("./evil;", "make"),
    "MAKE_COMMAND": Proof("./evil;", "make"),
    "MAKEOVERRIDES": Proof("$(shell ./evil)", "make"),
    "VPATH": Proof("$(shell ./evil)", "make"),
    "GPATH": Proof("$(shell ./evil)", "make"),
    **{name: Proof("./evil;", f"printf 'all:\\n\\t$({name}) x\\n' | make -f -") for name in ("CPP",
        "LD", "RM")},
    **{
        name: implicit("./evil;", source, target)
        for name, source, target in (
            ("AR", "x.o", "x.a(x.o)"), ("AS", "x.s", "x.o"), ("CC", "x.c", "x.o"),
            ("CO", "RCS/x,v", "x"),
            ("CTANGLE", "x.w", "x.c"), ("CWEAVE", "x.w", "x.tex"), ("CXX", "x.cc", "x.o"),
            ("FC", "x.f", "x.o"),
            ("GET", "SCCS/s.x", "x"), ("LEX", "x.l", "x.c"), ("LINT", "x.c", "x.ln"),
            ("M2C", "x.mod", "x.o"),
            ("MAKEINFO", "x.texi", "x.info"), ("OBJC", "x.m", "x.o"), ("PC", "x.p", "x.o"),
            ("TANGLE", "x.web", "x.p"),
            ("TEX", "x.tex", "x.dvi"), ("TEXI2DVI", "x.texi", "x.dvi"), ("WEAVE", "x.web", "x.tex"),
            ("YACC", "x.y", "x.c"),
        )
    },
    **{
        name: implicit(";./evil;", source, target)
        for name, source, target in (
            ("ARFLAGS", "x.o", "x.a(x.o)"), ("ASFLAGS", "x.s", "x.o"), ("CFLAGS", "x.c", "x.o"),
            ("COFLAGS", "RCS/x,v", "x"), ("CPPFLAGS", "x.c", "x.o"), ("CXXFLAGS", "x.cc", "x.o"),
            ("FFLAGS", "x.f", "x.o"), ("GFLAGS", "SCCS/s.x", "x"), ("LDFLAGS", "x.c", "x"),
            ("LDLIBS", "x.c", "x"),
            ("LFLAGS", "x.l", "x.c"), ("LINTFLAGS", "x.c", "x.ln"), ("LOADLIBES", "x.c", "x"),
            ("OUTPUT_OPTION", "x.c", "x.o"), ("PFLAGS", "x.p", "x.o"), ("RFLAGS", "x.r", "x.o"),
            ("TARGET_ARCH", "x.c", "x.o"), ("YFLAGS", "x.y", "x.c"),
        )
    },
    # gcc
    "COMPILER_PATH": Proof("{here}/bin", "gcc -c b.c"),
    "GCC_EXEC_PREFIX": Proof("{here}/gcc/", "gcc -c b.c"),
    "LIBRARY_PATH": Proof("{here}/modules",
        "gcc b.c -Wl,--no-as-needed -lzz && LD_LIBRARY_PATH=modules ./a.out"),
    "CPATH": Proof("{here}/include", "gcc a.c && ./a.out"),
    "C_INCLUDE_PATH": Proof("{here}/include", "gcc a.c && ./a.out"),
    "CPLUS_INCLUDE_PATH": Proof("{here}/include", "cp a.c a.cc; g++ a.cc && ./a.out"),
    # tar and less
    "TAR_OPTIONS": Proof("--checkpoint=1 --checkpoint-action=exec=./evil", "tar cf out mail"),
    "LESS": Proof("+!./evil\n", typed(r"\nq", "less mail")),
    "LESSOPEN": Proof("|./evil %s", "less mail"),
    "LESSCLOSE": Proof("./evil %s %s", "less mail", {"LESSOPEN": "echo mail; true %s"}),
    "LESSECHO": Proof("./evil", typed(r":e ma*\nq", "less mail")),
    "LESSEDIT": Proof("{here}/evil", typed("vq", "less mail")),
    "LESSGLOBALTAGS": Proof("./evil", typed("q", "less -t x")),
    "LESSKEY": Proof("{here}/lesskey.bin", "lesskey -o lesskey.bin lesskey; less mail"),
    "LESSKEY_SYSTEM": Proof("{here}/lesskey.bin", "lesskey -o lesskey.bin lesskey; less mail"),
    "LESSKEYIN": Proof("{here}/lesskey", "less mail"),
    "LESSKEYIN_SYSTEM": Proof("{here}/lesskey", "less mail"),
    "LESSMETACHARS": Proof("~", "less 'x;./evil'", {"LESSOPEN": "|cat %s"}),
    "LESSMETAESCAPE": Proof(";./evil #", "less 'a b'", {"LESSOPEN": "|cat %s"}),
    "MORE": Proof("+!./evil\n", typed(r"\nq", "less mail"), {"LESS_IS_MORE": "1"}),
    # Python
    "PYTHONBREAKPOINT": Proof("evil.x", f"{PYTHON} -c 'breakpoint()'"),
    "PYTHONEXECUTABLE": Proof("./evil",
        f"{PYTHON} -c 'import subprocess, sys; subprocess.run([sys.executable])'"),
    "PYTHONHOME": Proof("{here}/home", f"{PYTHON} -c 1"),
    "PYTHONINSPECT": Proof("1", typed(r'import os; os.system("./evil")\n', f"{PYTHON} -c 1")),
    "PYTHONPATH": Proof("{here}/python", f"{PYTHON} -c 'import json'"),
    "PYTHONPLATLIBDIR": Proof("../../../../../../../../{here}/lib", f"{PYTHON} -c 1"),
    "PYTHONPYCACHEPREFIX": Proof("{here}/cache", f"{PYTHON} cache.py; {PYTHON} -c 'import module'"),
    "PYTHONSTARTUP": Proof("{here}/evil.py", f"{PYTHON} -i"),
    "PYTHONUSERBASE": Proof("{here}/user", f"{PYTHON} -c 1"),
    "PYTHONWARNINGS": Proof("ignore::antigravity.x", f"{PYTHON} -c 1", {"BROWSER": "./evil"}),
    "BROWSER": Proof("{here}/evil", f"{PYTHON} -m webbrowser https://h.invalid"),
    # other interpreters
    "PERL5LIB": Proof("{here}/perl", "perl -Minteger -e 1"),
    "PERLLIB": Proof("{here}/perl", "perl -Minteger -e 1"),
    "PERL5OPT": Proof("-Mstrict;system('./evil')", "perl -e 1"),
    "PERL5DB": Proof("BEGIN { system('./evil') }", "perl -d -e 1"),
    "PERLDB_OPTS": Proof("pager=|./evil", typed(r"|p 1\nq\n", "perl -d -e 1")),
    "RUBYLIB": Proof("{here}/ruby", "ruby -e 'require \"json\"'"),
    "RUBYOPT": Proof("-r{here}/evil.rb", "ruby -e 1"),
    "RUBYPATH": Proof("{here}/ruby", "ruby -S zz.rb"),
    "GEM_HOME": Proof("{here}/gems", "gem list"),
    "GEM_PATH": Proof("{here}/gems", "gem list"),
    "IRBRC": Proof("{here}/evil.rb", "irb"),
    "NODE_OPTIONS": Proof("--require={here}/evil.js", "node -e 1"),
    "NODE_PATH": Proof("{here}/node", "node -e 'require(\"zz\")'"),
    "NODE_REPL_EXTERNAL_MODULE": Proof("{here}/evil.js", "node -i"),
    "npm_config_script_shell": Proof("{here}/evil", "npm run x"),
    "NPM_CONFIG_SCRIPT_SHELL": Proof("{here}/evil", "npm run x"),
    "Npm_Config_UserConfig": Proof("{here}/npmrc", "npm run x"),
    "npm_config_call": Proof("{here}/evil", "npm exec"),
    "JAVA_TOOL_OPTIONS": Proof(AGENT, "java -version"),
    "JDK_JAVA_OPTIONS": Proof(AGENT, "java -version"),
    "_JAVA_OPTIONS": Proof(AGENT, "java -version"),
    "JDK_JAVAC_OPTIONS": Proof("-processorpath {here}/classes -processor Evil",
        "javac -d classes Evil.java"),
    "CLASSPATH": Proof("{here}/classes", "java Evil"),
    "JAVA_HOME": Proof("{here}/java", "mvn -version"),
    "LUA_INIT": Proof("os.execute('./evil')", "lua -v"),
    "LUA_PATH": Proof("{here}/lua/?.lua", "lua -e 'require \"zz\"'"),
    "LUA_CPATH": Proof("{here}/modules/?.so", "lua -e 'require \"zz\"'"),
    "ERL_AFLAGS": Proof("-eval os:cmd(\"./evil\")", "erl -noshell -s init stop"),
    "ERL_FLAGS": Proof("-eval os:cmd(\"./evil\")", "erl -noshell -s init stop"),
    "ERL_ZFLAGS": Proof("-eval os:cmd(\"./evil\")", "erl -noshell -s init stop"),
    "PHPRC": Proof("{here}/php", "php -r 1"),
    "PHP_INI_SCAN_DIR": Proof("{here}/php", "php -r 1"),
    "RUSTC": Proof("{here}/evil", "cargo check --offline", RUSTUP),
    "RUSTC_WRAPPER": Proof("{here}/evil", "cargo check --offline", RUSTUP),
    "RUSTC_WORKSPACE_WRAPPER": Proof("{here}/evil", "cargo check --offline", RUSTUP),
    "RUSTFLAGS": Proof("-Clinker={here}/evil", "cargo build --offline", RUSTUP),
    "CARGO_ENCODED_RUSTFLAGS": Proof("-Clinker={here}/evil", "cargo build --offline", RUSTUP),
    "CARGO_BUILD_RUSTC_WRAPPER": Proof("{here}/evil", "cargo check --offline", RUSTUP),
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER": Proof(
        "{here}/evil", "cargo build --offline --target x86_64-unknown-linux-gnu", RUSTUP
    ),
    "CARGO_HOME": Proof("{here}/cargo", "cargo check --offline", RUSTUP),
    "RUSTUP_HOME": Proof("{here}/rustup", "rustup run zz rustc -V", RUSTUP),
    "RUSTUP_TOOLCHAIN": Proof("{here}/toolchain",
        "cd src; $(dirname $(command -v rustup))/rustc -V", RUSTUP),
    "GOFLAGS": Proof("-toolexec={here}/evil", "go build x.go", {"GO111MODULE": "off"}),
    "RSYNC_RSH": Proof("{here}/evil", "rsync host.invalid:x y"),
    "RSYNC_CONNECT_PROG": Proof("{here}/evil", "rsync rsync://host.invalid/x"),
    "PSQLRC": Proof("{here}/psqlrc", rf"{AT_PSQL} -c '\q'"),
    "PSQL_EDITOR": Proof("./evil", f"{AT_PSQL} -f edit.sql"),
    "PSQL_PAGER": Proof("./evil", typed("", f"{AT_PSQL} -f help.sql"), {"PAGER": "true"}),
    "VIMINIT": Proof(":call system('./evil')", "vim -c q"),
    "EXINIT": Proof(":call system('./evil')", "vim -c q"),
    "R_PROFILE": Proof("{here}/evil.R", "R --no-save -e 1"),
    "R_PROFILE_USER": Proof("{here}/evil.R", "R --no-save -e 1"),
    "R_ENVIRON": Proof("{here}/Renviron", "R --no-save -e 1"),
    "R_ENVIRON_USER": Proof("{here}/Renviron", "R --no-save -e 1"),
    "HGRCPATH": Proof("{here}/hgrc", "hg version"),
    "HGEDITOR": Proof("{here}/evil", "hg init hg; cd hg; : > a; hg add a; hg commit -u x"),
    "WGETRC": Proof("{here}/wgetrc", "wget --tries=1 http://127.0.0.1:1/"),
    "OPENSSL_CONF": Proof("{here}/openssl.cnf", "openssl rand 1"),
    "OPENSSL_ENGINES": Proof("{here}/modules", "openssl engine zz"),
    "OPENSSL_MODULES": Proof("{here}/modules", "openssl list -providers -provider zz"),
}  # fmt: skip
"""One or more for each name; `*` of a name is filled in."""

NOT_SHOWN: Mapping[str, str] = {
    "DYLD_*": "macOS",
    "GLIBC_TUNABLES": "turns checks of the C library off",
    "LOCPATH": "loads data that the C library trusts",
    "NLSPATH": "loads format strings that the C library trusts",
    "IFS": "today's shells set it themselves",
    "BASHOPTS": "switches bash's options, with nothing to run of its own",
    "SHELLOPTS": "lets bash obey PS4, which it does not for root",
    "GITPERLLIB": "git has hardly a command in Perl any more",
    "OBJC_INCLUDE_PATH": "as C_INCLUDE_PATH, for a compiler that hardly a machine has",
    "LESSKEY_CONTENT": "less 633",
    "PYTHON_PRESITE": "debug builds of Python",
    "PERL5SHELL": "Windows",
    "RUBYLIB_PREFIX": "Windows",
    "RUBYSHELL": "Windows",
    "BUNDLE_GEMFILE": "a Gemfile is Ruby; bundler would install its gems",
    "DOTNET_STARTUP_HOOKS": "a class that the .NET SDK would compile",
    "RUSTUP_DIST_SERVER": "rustup installs what that server has",
    "RUSTUP_UPDATE_ROOT": "rustup replaces itself with what that server has",
    "VIMRUNTIME": "vim loads its scripts from there, and waits for a person without them",
    "HGMERGE": "as HGEDITOR, for the conflicts of a merge",
    "SCREENRC": "screen starts what it names, and goes on until it is stopped",
    "SYSSCREENRC": "as SCREENRC",
    "SEALPIPE_*": "ours",
}


def find_program(name: str) -> str:
    """The path of a program. Always an allowed skip: no machine has all of these."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="module")
def java_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`evil` as a class of Java."""
    here = tmp_path_factory.mktemp("java")
    (here / "Evil.java").write_text(EVIL_JAVA)
    subprocess.run([find_program("javac"), "Evil.java"], cwd=here, check=True)
    return here / "Evil.class"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`evil` as a library."""
    here = tmp_path_factory.mktemp("compiled")
    (here / "evil.c").write_text(EVIL_C)
    subprocess.run(
        [find_program("gcc"), "-shared", "-fPIC", "-o", "evil.so", "evil.c"], cwd=here, check=True
    )
    return here / "evil.so"


def make_files(here: Path, library: Path | None) -> None:
    """Write what the programs find in their working directory."""
    for name, text in FILES.items():
        file = here / name.format(python=MODULES)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{here}", str(here)))
        if text.startswith("#!"):
            file.chmod(0o755)
    if library:
        for copy in ("evil.so", "modules/zz.so", "modules/libzz.so", "gconv/zz.so"):
            (here / copy).parent.mkdir(exist_ok=True)
            shutil.copy(library, here / copy)


def run(here: Path, proof: Proof, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command of a proof as a user would, with nothing of this user."""
    own = {
        "PATH": os.environ["PATH"],
        "HOME": f"{here}/nobody",
        "TERM": "xterm",
        "EDITOR": "true",
        "CI": "1",
        "RAN": f"{here}/ran",
    }
    return subprocess.run(
        ["/bin/sh", "-c", proof.command.replace("{here}", str(here))],
        cwd=here,
        env={**own, **proof.also, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize("name", PROOFS)
def test_a_value_under_this_name_would_run_code(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It runs with the name and does not without it, so it is the name."""
    proof = PROOFS[name]
    for each in sorted(PROGRAMS & set(re.findall(r"[A-Za-z+-]+", proof.command))):
        find_program(each)
    library = request.getfixturevalue("compiled") if name in LOADING else None
    java_class = request.getfixturevalue("java_class") if "Evil" in proof.command else None
    for has_it in (False, True):
        here = tmp_path / str(has_it)
        make_files(here, library)
        if java_class:
            (here / "classes").mkdir()
            shutil.copy(java_class, here / "classes")
        for setup in (each for part, each in SETUP.items() if part in proof.command):
            subprocess.run(["/bin/sh", "-ec", setup], cwd=here, check=True)
        value = proof.value.replace("{here}", str(here))
        done = run(here, proof, {name: value} if has_it else {})
        assert (here / "ran").exists() == has_it, done.stdout + done.stderr


@pytest.mark.parametrize("name", PROOFS)
def test_no_secret_may_have_this_name(name: str) -> None:
    with pytest.raises(
        UsageError, match=f"{name} may not come from a store: {find_reader(name)} would obey it"
    ):
        parse_variable(f"{name}=env:X")


def test_each_name_is_shown_or_has_its_reason() -> None:
    shown = {
        name
        for reader in REFUSED
        for name in reader.names
        if any(reader._replace(names=(name,)).obeys(each) for each in PROOFS)
    }
    assert shown | set(NOT_SHOWN) == set(NAMES)
    assert not shown & set(NOT_SHOWN)


@pytest.mark.parametrize("name", ["npm_config_", "NPM_CONFIG_SCRIPT_SHELL", "Npm_Config_git"])
def test_npm_reads_its_names_in_either_case(name: str) -> None:
    assert find_reader(name) == "npm"


@pytest.mark.parametrize("name", ["path", "Git_Ssh", "NPM_TOKEN", "makefiles"])
def test_other_programs_do_not(name: str) -> None:
    assert find_reader(name) is None


@pytest.mark.parametrize("name", CREDENTIAL_FILES)
def test_a_file_of_credentials_may_come_from_a_store(name: str) -> None:
    """A kubeconfig is a secret like others, though kubectl may run what it names; the page about
    run says so.
    """
    assert parse_variable(f"{name}=env:X").name == name
    page = Path(__file__).resolve().parents[3] / "docs/how-to/run-a-command.md"
    assert f"`{name}`" in page.read_text(encoding="utf-8")
