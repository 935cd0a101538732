import unittest
from typing import Any
from unittest import mock

from scripts.deployment import inline
from scripts.deployment.sign_in import PROJECT, TEMPLATE

OTHER = "019b76da-a800-700a-8000-000000000001"
SETTINGS = {"OPERATORS_GROUP": "operators", "OPERATOR_SCOPE": "searches/operate"}


def handler() -> Any:
    """Tests of the inline function of the template."""
    return inline.load(TEMPLATE)["handler"]


class Trigger(unittest.TestCase):
    def token(self, request: dict[str, Any]) -> Any:
        with mock.patch.dict("os.environ", SETTINGS):
            answer = handler()({"request": request, "response": {}}, None)
        return answer["response"]["claimsAndScopeOverrideDetails"]["accessTokenGeneration"]

    def of(self, *groups: str) -> Any:
        return self.token({"groupConfiguration": {"groupsToOverride": list(groups)}})

    def test_reviewer_receives_projects_without_operator_scope(self) -> None:
        token = self.of(PROJECT, "readers", OTHER)
        self.assertEqual(token["claimsToAddOrOverride"], {"projects": f"{OTHER} {PROJECT}"})
        self.assertEqual(token["scopesToSuppress"], ["searches/operate"])

    def test_operator_receives_all_projects_and_scope(self) -> None:
        self.assertEqual(self.of(PROJECT, "operators"), {"claimsToAddOrOverride": {"projects": "*"}})

    def test_group_name_never_grants_all_projects(self) -> None:
        for groups in (
            [],
            ["*"],
            ["Operators"],
            ["operators *"],
            [f"{PROJECT} *"],
            [f"{{{PROJECT}}}"],
            ["a,*"],
        ):
            token = self.of(*groups)
            self.assertEqual(token["claimsToAddOrOverride"], {"projects": ""}, groups)
            self.assertEqual(token["scopesToSuppress"], ["searches/operate"], groups)
        for request in ({}, {"groupConfiguration": None}, {"groupConfiguration": {"groupsToOverride": None}}):
            self.assertEqual(self.token(request)["claimsToAddOrOverride"], {"projects": ""}, request)


if __name__ == "__main__":
    unittest.main()
