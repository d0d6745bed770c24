"""The SBOM of a release, as CycloneDX 1.6: `python -I .github/release/sbom.py OUT.json`.

It has sealpipe and every package of actions/_setup/locks/all.txt, which the actions and the image
install from, with version, purl, the hashes of its files, and the marker under which it is
installed. What base.txt has is required, all else optional: it comes with an extra. The same commit
makes the same bytes: the time is SOURCE_DATE_EPOCH, or none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9.-]*)==(?P<version>[^ ;\\\n]+)(?: ; (?P<marker>[^\\\n]+))?"
    r"(?P<rest>(?:[ ]?\\\n[^\\\n]*)*)",
    re.MULTILINE,
)


def read_lock(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield each package of a lock file: name, version, marker or None, and the hashes of its
    files.
    """
    for match in ROW.finditer(text):
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", match["rest"])
        marker = match["marker"]
        yield {**match.groupdict(), "marker": marker.strip() if marker else None, "hashes": hashes}


def make_component(row: Mapping[str, Any], *, is_required: bool) -> dict[str, Any]:
    """Return a package as a component.

    Its files' hashes are of its distribution: each file has its own.
    """
    purl = f"pkg:pypi/{row['name']}@{row['version']}"
    files = [{"alg": "SHA-256", "content": each} for each in row["hashes"]]
    component = {
        "type": "library",
        "bom-ref": purl,
        "name": row["name"],
        "version": row["version"],
        "scope": "required" if is_required else "optional",
        "purl": purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": purl,
                "comment": "SHA-256 of each file of this version",
                "hashes": files,
            }
        ],
    }
    if row["marker"]:
        component["properties"] = [{"name": "sealpipe:marker", "value": row["marker"]}]
    return component


def make_sbom(
    project: Mapping[str, Any], lock: str, base: str, epoch: str | None
) -> dict[str, Any]:
    """Return the SBOM of the project with these two lock files."""
    required = {(row["name"], row["version"]) for row in read_lock(base)}
    components: dict[str, dict[str, Any]] = {}
    for row in read_lock(lock):
        component = make_component(row, is_required=(row["name"], row["version"]) in required)
        components.setdefault(component["purl"], component)
    root = f"pkg:pypi/{project['name']}@{project['version']}"
    metadata: dict[str, Any] = {
        "component": {
            "type": "application",
            "bom-ref": root,
            "name": project["name"],
            "version": project["version"],
            "description": project["description"],
            "licenses": [{"expression": project["license"]}],
            "purl": root,
            "externalReferences": [{"type": "vcs", "url": project["urls"]["Source"]}],
        }
    }
    if epoch:
        metadata["timestamp"] = datetime.fromtimestamp(int(epoch), UTC).isoformat()
    body = {
        "metadata": metadata,
        "components": [components[name] for name in sorted(components)],
        "dependencies": [
            {"ref": root, "dependsOn": sorted(components)},
            *({"ref": name} for name in sorted(components)),
        ],
    }
    serial = uuid5(NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
    }
    return {**head, "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock, base = (
        (ROOT / f"actions/_setup/locks/{name}.txt").read_text(encoding="utf-8")
        for name in ("all", "base")
    )
    sbom = make_sbom(project, lock, base, os.environ.get("SOURCE_DATE_EPOCH"))
    out.write_text(json.dumps(sbom, indent=1) + "\n", encoding="utf-8")
    print(f"{out.name}: {len(sbom['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
