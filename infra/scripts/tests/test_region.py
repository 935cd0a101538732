import os
import sys
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import deploy
import operate
from scripts import region


class Region(unittest.TestCase):
    def test_region_of_the_aws_cli_is_preferred(self) -> None:
        both = {"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "us-east-1"}
        self.assertEqual(region.selected(both), "eu-central-1")
        self.assertEqual(region.selected({"AWS_DEFAULT_REGION": "us-east-1"}), "us-east-1")
        self.assertIsNone(region.selected({"AWS_REGION": ""}))

    def test_programs_work_in_this_region(self) -> None:
        """boto3 itself does not read AWS_REGION."""
        asked = list[Any]()

        def session(region_name: str | None) -> Any:
            asked.append(region_name)
            return SimpleNamespace(region_name=region_name, client=mock.Mock())

        errors = SimpleNamespace(BotoCoreError=OSError, ClientError=OSError)
        modules: dict[str, Any] = {"boto3": SimpleNamespace(Session=session), "botocore": mock.Mock()}
        with (
            mock.patch.dict(sys.modules, {**modules, "botocore.exceptions": errors}),
            mock.patch.dict(os.environ, {"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "us-east-1"}),
            mock.patch.object(operate, "run", return_value=True),
        ):
            self.assertEqual(deploy.own_account().region, "eu-central-1")
            self.assertEqual(operate.main(["reviews", "settings"]), 0)
        self.assertEqual(asked, ["eu-central-1", "eu-central-1"])
