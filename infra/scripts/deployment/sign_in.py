"""The template of the user pool, deployed to the substitute.

The substitute has no sign-in domain and calls no trigger. The function is therefore invoked in the way of
Cognito, and its response is compared with the claims that `start-upload` expects in a token.
"""

import json

from scripts import preflight
from scripts.deployment.progress import say
from scripts.deployment.stack import Client, Json, Stack
from scripts.errors import check
from scripts.paths import ROOT

TEMPLATE = ROOT / "infra" / "templates" / "sign-in.yaml"
PAGE = "https://page.example/"
PROJECT = "8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77"


def deploy(stack: Stack) -> dict[str, str]:
    """Deploys the pool and checks it. Returns the parameters for the other stacks."""
    stack.deploy("sign-in", given={"DomainPrefix": f"{stack.name}-sign-in", "PageUrl": PAGE})
    name = stack.stack_of("sign-in")
    outputs = dict(preflight.deployed(stack.account.clients(), name).outputs)
    resources = stack.read_resources(name)
    check_pool(stack.client("cognito-idp"), outputs.pop("UserPoolId"), outputs)
    operate = f"{outputs['ScopePrefix']}operate"
    check_trigger(stack.client("lambda"), resources["AddProjects"].physical, operate)
    say("the user pool: a client, scopes, a group, and a trigger that adds projects")
    return outputs


def check_pool(cognito: Client, pool: str, outputs: dict[str, str]) -> None:
    client = cognito.describe_user_pool_client(UserPoolId=pool, ClientId=outputs["SignInClientId"])[
        "UserPoolClient"
    ]
    wanted = {"openid", *(outputs["ScopePrefix"] + name for name in ("read", "write", "operate"))}
    check(set(client["AllowedOAuthScopes"]) == wanted, f"the client has the scopes {client}")
    check(client["CallbackURLs"] == [PAGE], f"people are sent back to {client['CallbackURLs']}")
    check("ClientSecret" not in client, "the client of a page has a secret")
    [server] = cognito.list_resource_servers(UserPoolId=pool, MaxResults=10)["ResourceServers"]
    named = {f"{server['Identifier']}/{scope['ScopeName']}" for scope in server["Scopes"]}
    check(named == wanted - {"openid"}, f"the resource server has the scopes {named}")
    groups = [group["GroupName"] for group in cognito.list_groups(UserPoolId=pool)["Groups"]]
    check(groups == ["operators"], f"the groups are {groups}")


def check_trigger(functions: Client, name: str, scope: str) -> None:
    def token(groups: list[str]) -> Json:
        event = {"request": {"groupConfiguration": {"groupsToOverride": groups}}, "response": {}}
        answer = functions.invoke(FunctionName=name, Payload=json.dumps(event))
        check("FunctionError" not in answer, f"the trigger failed: {answer}")
        found = json.loads(answer["Payload"].read())["response"]["claimsAndScopeOverrideDetails"]
        return dict(found["accessTokenGeneration"])

    reviewer, operator = token([PROJECT, "readers"]), token(["operators"])
    check(reviewer["claimsToAddOrOverride"] == {"projects": PROJECT}, f"a reviewer gets {reviewer}")
    check(reviewer["scopesToSuppress"] == [scope], f"a reviewer gets {reviewer}")
    check(operator == {"claimsToAddOrOverride": {"projects": "*"}}, f"an operator gets {operator}")
