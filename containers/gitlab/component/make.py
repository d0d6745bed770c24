"""Write a CI/CD component project for GitLab: `python containers/gitlab/component/make.py FOLDER
--image IMAGE`.

The components are the templates beside this folder, each at `templates/NAME/template.yml`, where
GitLab looks for them. FOLDER is a checkout of the component project; what stands there is replaced.
IMAGE, the image of your own registry, becomes the default of the input `image`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
IMAGE_INPUT = """\
    image:
      description: "The image with sealpipe, built from containers/Dockerfile. \
A shell runner does not use it."
"""


def make_template(text: str, image: str) -> str:
    """Return a component's text. Raises ValueError if the template has no input `image`."""
    head, found, rest = text.partition(IMAGE_INPUT)
    if not found:
        raise ValueError("the template has no input `image`")
    return f'{head}{IMAGE_INPUT}      default: "{image}"\n{rest}'


def write_project(folder: Path, image: str) -> None:
    """Write the component project: one folder for each template, the pipeline, the README and the
    licence.
    """
    for source in sorted(HERE.parent.glob("*.yml")):
        target = folder / "templates" / source.stem / "template.yml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            make_template(source.read_text(encoding="utf-8"), image), encoding="utf-8"
        )
    shutil.copyfile(HERE / "pipeline.yml", folder / ".gitlab-ci.yml")
    shutil.copyfile(HERE / "README.md", folder / "README.md")
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a CI/CD component project for GitLab.")
    parser.add_argument("folder", type=Path, help="the component project's checkout")
    parser.add_argument("--image", required=True, help="the image that the jobs use")
    given = parser.parse_args()
    write_project(given.folder, given.image)
