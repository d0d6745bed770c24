"""The recipes of docs/how-to/ci/recipes as their CI systems read them: the shell steps, and what
each is given.

Written from the vendors' documentation; a fake of each system, as far as a step can tell. YAML is
parsed. A Jenkinsfile and TeamCity's Kotlin are not: their shell scripts, and the variables declared
beside them, are found by patterns.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from support.parts import ROOT

FOLDER = ROOT / "docs/how-to/ci/recipes"
PARTS: Final = ("share", "unseal", "collect")
"""What every recipe has.

`notify` is a step of its own where a job's steps can differ in what they get.
"""


@dataclass(frozen=True)
class Step:
    """A shell step: its script, what the recipe sets for it, the secrets that it names, and the
    files it hands on.
    """

    script: str
    environ: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class System:
    """A CI system: its files, how it starts a script, the variables of a job, and its reading of
    the files.
    """

    files: tuple[str, ...]
    shell: tuple[str, ...]
    job: Mapping[str, str]
    read: Callable[[list[str]], dict[str, Step]]
    settings: tuple[str, ...] = ()
    """What an administrator sets beside the recipe, and every step gets."""
    shared_workspace: bool = False
    schema: str = ""


def _azure(texts: list[str]) -> dict[str, Step]:
    steps = {}
    config = yaml.safe_load(texts[0])
    variables = {each["name"]: each["value"] for each in config["variables"] if "name" in each}
    for name, value in {"$(System.TeamProject)": "acme", "$(Build.BuildId)": "77"}.items():
        variables = {each: text.replace(name, value) for each, text in variables.items()}
    for job in config["jobs"]:
        kept = tuple(each["publish"] for each in job["steps"] if "publish" in each)
        for step in [each for each in job["steps"] if "bash" in each]:
            given = step.get("env", {})
            secrets = tuple(name for name, text in given.items() if text.startswith("$("))
            plain = {name: text for name, text in given.items() if name not in secrets}
            steps[step["name"]] = Step(
                step["bash"], {**variables, **job.get("variables", {}), **plain}, secrets, kept
            )
    return steps


def _circleci(texts: list[str]) -> dict[str, Step]:
    config = yaml.safe_load(texts[0])
    contexts = {
        name: given["context"]
        for flow in config["workflows"].values()
        for entry in flow["jobs"]
        for name, given in entry.items()
    }
    steps = {}
    for name, job in config["jobs"].items():
        assert contexts[name] == "handover"
        known = [each for each in job["steps"] if each != "checkout"]
        (step,) = [each["run"] for each in known if "run" in each]
        kept = [
            path for each in known for path in each.get("persist_to_workspace", {}).get("paths", ())
        ]
        secrets = ("SEALPIPE_API_KEY", "STAGING_PASSWORD")
        steps[name] = Step(step["command"], job.get("environment", {}), secrets, tuple(kept))
    return steps


def _buildkite(texts: list[str]) -> dict[str, Step]:
    config = yaml.safe_load(texts[0])
    steps = {}
    for name, step in zip(PARTS, config["steps"], strict=True):
        kept = (step["artifact_paths"],) if "artifact_paths" in step else ()
        environ = {**config["env"], **step.get("env", {})}
        (options,) = [options for plugin in step["plugins"] for options in plugin.values()]
        secrets = tuple(each for each in step["secrets"] if each in options["environment"])
        steps[name] = Step(step["command"].replace("$$", "$"), environ, secrets, kept)
    return steps


def _bitbucket(texts: list[str]) -> dict[str, Step]:
    pipelines = yaml.safe_load(texts[0])["pipelines"]
    (stage,) = [each["stage"] for each in pipelines["tags"]["v*"]]
    given = [(each["step"], stage.get("deployment")) for each in stage["steps"]]
    given += [
        (each["step"], each["step"].get("deployment")) for each in pipelines["custom"]["collect"]
    ]
    steps = {}
    for name, (step, deployment) in zip(PARTS, given, strict=True):
        secrets = ("SEALPIPE_API_KEY", "STAGING_PASSWORD") if deployment == "handover" else ()
        secrets += ("BITBUCKET_STEP_OIDC_TOKEN",) if step.get("oidc") else ()
        steps[name] = Step("\n".join(step["script"]), {}, secrets, tuple(step.get("artifacts", ())))
    return steps


def _woodpecker(texts: list[str]) -> dict[str, Step]:
    steps = {}
    for step in [each for text in texts for each in yaml.safe_load(text)["steps"]]:
        plain = {
            name: value for name, value in step["environment"].items() if isinstance(value, str)
        }
        secrets = tuple(
            each["from_secret"].upper()
            for each in step["environment"].values()
            if isinstance(each, dict)
        )
        steps[step["name"]] = Step("\n".join(step["commands"]), plain, secrets)
    return steps


_CREDENTIAL = re.compile(r"^\s*(\w+) = credentials\('[\w-]+'\)$", re.MULTILINE)
_BOUND = re.compile(r"withCredentials\(\[string\(credentialsId: '[\w-]+', variable: '(\w+)'\)\]\)")
_PLAIN = re.compile(r"""^\s*(\w+) = ['"]([^'"]*)['"]""", re.MULTILINE)


def _jenkins(texts: list[str]) -> dict[str, Step]:
    """The stages, and what follows a build that was not successful as `expire`."""
    main, post = texts[0].split("\n    post {\n")
    whole, *stages = re.split(r"^ +stage\('(\w+)'\) \{$", main, flags=re.MULTILINE)
    steps = {}
    for name, stage in zip([*stages[::2], "expire"], [*stages[1::2], post], strict=True):
        (script,) = re.findall(r"^ +sh '''\n(.*?)^ +'''$", stage, re.DOTALL | re.MULTILINE)
        secrets = tuple(
            _CREDENTIAL.findall(whole) + _CREDENTIAL.findall(stage) + _BOUND.findall(stage)
        )
        environ = dict(_PLAIN.findall(whole) + _PLAIN.findall(stage))
        kept = tuple(
            re.findall(r"^ +stash name: 'link', includes: '([^']+)'$", stage, re.MULTILINE)
        )
        # In Groovy, a backslash at the end of a line joins it to the next.
        steps[name] = Step(textwrap.dedent(script).replace("\\\n", ""), environ, secrets, kept)
    return steps


_PARAM = re.compile(r'^ +param\("env\.(\w+)", "([^"]*)"\)$', re.MULTILINE)


def _teamcity(texts: list[str]) -> dict[str, Step]:
    whole, *builds = re.split(r"^object (\w+) : BuildType\(\{$", texts[0], flags=re.MULTILINE)
    secrets = tuple(re.findall(r"env\.(\w+)", whole.partition("import")[0]))
    known = {"%teamcity.build.branch%": "v1.0.0", "%build.vcs.number%": "abc123"}
    steps = {}
    for build in builds[1::2]:
        (name,) = re.findall(r'^ +name = "(\w+)"$', build, re.MULTILINE)
        (script,) = re.findall(
            r'^ +scriptContent = """\n(.*?)^ +"""\.trimIndent\(\)$', build, re.DOTALL | re.MULTILINE
        )
        environ = dict(_PARAM.findall(whole) + _PARAM.findall(build))
        for parameter, value in known.items():
            environ = {each: text.replace(parameter, value) for each, text in environ.items()}
        kept = tuple(re.findall(r'^    artifactRules = "([^"]+)"$', build, re.MULTILINE))
        steps[name] = Step(textwrap.dedent(script).replace("${'$'}", "$"), environ, secrets, kept)
    return steps


_SERVICE = ("SEALPIPE_BASE_URL", "SEALPIPE_LINK_BASE_URL", "VENDOR_REQUEST", "VAULT_ADDR")
_BASH = ("bash", "--noprofile", "--norc")

SYSTEMS: Final[Mapping[str, System]] = {
    "azure": System(
        ("azure-pipelines.yml",),
        _BASH,
        {
            "TF_BUILD": "True",
            "BUILD_BUILDID": "77",
            "SYSTEM_JOBID": "j",
            "SYSTEM_TEAMPROJECT": "acme",
        },
        _azure,
        (*_SERVICE, "PIPELINE_WORKSPACE", "SYSTEM_OIDCREQUESTURI", "AGENT_TEMPDIRECTORY"),
        schema="azure-pipelines",
    ),
    "circleci": System(
        ("circleci.yml",),
        ("bash", "-eo", "pipefail"),
        {"CI": "true", "CIRCLECI": "true", "CIRCLE_WORKFLOW_ID": "w-77", "CIRCLE_BUILD_NUM": "77"},
        _circleci,
        _SERVICE,
        schema="circle-ci",
    ),
    "buildkite": System(
        ("buildkite.yml",),
        ("sh", "-e"),
        {
            "CI": "true",
            "BUILDKITE": "true",
            "BUILDKITE_BUILD_ID": "b-77",
            "BUILDKITE_JOB_ID": "j-1",
        },
        _buildkite,
        schema="buildkite",
    ),
    "bitbucket": System(
        ("bitbucket-pipelines.yml",),
        ("bash", "-e"),
        {
            "CI": "true",
            "BITBUCKET_BUILD_NUMBER": "77",
            "BITBUCKET_PIPELINE_UUID": "{77}",
            "BITBUCKET_STEP_UUID": "{1}",
        },
        _bitbucket,
        _SERVICE,
        schema="bitbucket-pipelines",
    ),
    "woodpecker": System(
        ("woodpecker-release.yml", "woodpecker-vendor.yml"),
        ("sh", "-e"),
        {
            "CI": "woodpecker",
            "CI_REPO": "acme/app",
            "CI_PIPELINE_NUMBER": "77",
            "CI_WORKFLOW_NUMBER": "1",
        },
        _woodpecker,
        shared_workspace=True,
        schema="woodpecker-ci",
    ),
    "jenkins": System(
        ("Jenkinsfile",),
        ("sh", "-xe"),  # as the step `sh` starts a script without a first line of its own
        {
            "JENKINS_URL": "https://ci.example/",
            "JOB_NAME": "app",
            "BUILD_NUMBER": "77",
            "BUILD_TAG": "jenkins-app-77",
        },
        _jenkins,
        ("WORKSPACE_TMP",),
    ),
    "teamcity": System(
        ("teamcity.kts",),
        ("sh",),
        {"TEAMCITY_VERSION": "2024.12", "BUILD_NUMBER": "77"},
        _teamcity,
    ),
}


def read(name: str, replaced: Mapping[str, Any] | None = None) -> dict[str, Step]:
    """A system's steps by their part, with other texts in place of the recipe's examples."""
    texts = [(FOLDER / file).read_text(encoding="utf-8") for file in SYSTEMS[name].files]
    for old, new in (replaced or {}).items():
        texts = [text.replace(old, str(new)) for text in texts]
    return SYSTEMS[name].read(texts)
