"""What every CI system is held to."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sealpipe.errors import NotConfiguredError, PluginError
from sealpipe.plugin import CI, CIInfo, Run
from sealpipe.registry import Registry
from sealpipe.testing.contract import Contract


class CIContract(Contract):
    """Subclass it with `name` and the `environ` of a job."""

    kind = "ci"

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        """The variables that a job has there."""
        raise NotImplementedError

    def test_it_is_found_by_its_sign_and_not_without(self, environ: Mapping[str, str]) -> None:
        found = self.registry_in(environ).ci()
        assert isinstance(found, CI)
        info = self.info(self.registry_in(environ))
        assert isinstance(info, CIInfo)
        bare = {name: value for name, value in environ.items() if name != info.sign}
        assert self.registry_in(bare).ci() is None

    def test_a_run_has_a_name_that_tells_it_from_others(self, registry: Registry) -> None:
        ci = registry.ci()
        assert ci is not None
        run = ci.run()
        assert isinstance(run, Run)
        assert run.ci == self.name
        assert run.id.strip("/")

    def test_without_a_token_it_says_what_the_job_lacks(self, registry: Registry) -> None:
        ci = registry.ci()
        assert ci is not None
        with pytest.raises(PluginError) as lacking:
            ci.oidc_token("an-audience")
        assert isinstance(lacking.value, NotConfiguredError)
        assert lacking.value.remedy

    def test_it_says_of_itself_whether_it_can_be_used(self, registry: Registry) -> None:
        """A CI has no check of its own: being found is all."""
        assert registry.ci() is not None

    def test_its_settings_show_nothing_in_their_repr(self, registry: Registry) -> None:
        assert "Secret(" not in repr(registry.ci())
