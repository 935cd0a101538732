import re
import unittest

from scripts.paths import ROOT

TEMPLATE = (ROOT / "template.yaml").read_text("utf-8")
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret"
KEY = "arn:aws:kms:eu-central-1:123456789012:key"
UUID = "01234567-89ab-cdef-0123-456789abcdef"

# Parameters that AWS, or a function at its start, would reject after half of the stack is created.
REFUSED = {
    "MongoSecretArn": [f"{SECRET}:search-import/mongodb", "search-import/mongodb"],
    "MongoSecretKeyArn": [f"{KEY}/alias", UUID],
    "MongoSecretVersion": ["AWSCURRENT"],
    "MongoUri": ["mongodb://user:password@db.example", "db.example"],
    "MongoDatabase": ["", "search.import", "search import", "a" * 64],
    "JwtIssuer": ["http://id.example", "id.example"],
    "AllowedOrigins": ["review.example", "https://review.example/", "https://review.example/page"],
    "SubnetIds": ["10.0.0.0/24", "vpc-0a1b"],
    "SecurityGroupIds": ["default", "subnet-0a1b"],
    "KeyPrefix": ["", "uploads", "exports/", "exports/uploads/", "/uploads/", "a" * 621 + "/"],
    "Release": ["", "a release", "a" * 65],
}
TAKEN = {
    "MongoSecretArn": ["", f"{SECRET}:search-import/mongodb-AbCdE1"],
    "MongoSecretKeyArn": ["", f"{KEY}/{UUID}", f"{KEY}/mrk-1234abcd12ab34cd56ef1234567890ab"],
    "MongoSecretVersion": ["", UUID],
    "MongoUri": ["", "mongodb+srv://db.example/?authSource=%24external&authMechanism=MONGODB-AWS"],
    "MongoDatabase": ["search_import", "si-0a1b-database"],
    "JwtIssuer": ["", "https://id.example/"],
    "AllowedOrigins": ["", "https://review.example", "http://localhost:5173"],
    "SubnetIds": ["", "subnet-0a1b2c3d4e5f60718"],
    "SecurityGroupIds": ["", "sg-0a1b2c3d4e5f60718"],
    "KeyPrefix": ["uploads/", "a/exports/", "exports2/"],
    "Release": ["first", "0a1b2c3d4e"],
}


def accepts(parameter: str, value: str) -> bool:
    """Whether CloudFormation takes a value, or one of a list; it matches patterns as a whole."""
    found = re.search(rf"^  {parameter}:\n((?:    .*\n)+)", TEMPLATE, re.MULTILINE)
    declared = found.group(1) if found else ""

    def said(name: str) -> str:
        line = re.search(rf"^    {name}: ([^ \n]+)", declared, re.MULTILINE)
        return line.group(1) if line else ""

    fits = not said("MaxLength") or len(value) <= int(said("MaxLength"))
    return fits and re.fullmatch(said("AllowedPattern"), value) is not None


class Parameters(unittest.TestCase):
    def test_refuse_what_would_be_refused_late(self) -> None:
        for parameter, values in REFUSED.items():
            for value in values:
                self.assertFalse(accepts(parameter, value), f"{parameter}={value}")

    def test_take_everything_else(self) -> None:
        for parameter, values in TAKEN.items():
            for value in values:
                self.assertTrue(accepts(parameter, value), f"{parameter}={value}")
