import unittest

import deploy

DECLARED = {name: one for part in deploy.known().values() for name, one in part.items()}
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret"
HASH = "0123456789abcdef" * 4

# Parameters that AWS, or a function at its start, would reject after half of the stack is created.
REFUSED = {
    "MongoSecretArn": [f"{SECRET}:search-import/mongodb", "search-import/mongodb"],
    "PageKeySha256": ["key", HASH.upper(), HASH[1:]],
    "MongoUri": ["mongodb://user:password@db.example", "db.example"],
    "MongoDatabase": ["", "search.import", "search import", "a" * 64],
    "JwtIssuer": ["http://id.example", "id.example"],
    "AllowedOrigins": ["review.example", "https://review.example/", "https://review.example/page"],
    "SubnetIds": ["10.0.0.0/24", "vpc-0a1b"],
    "SecurityGroupIds": ["default", "subnet-0a1b"],
    "RestoredTables": ["ledger,a b", "arn:aws:dynamodb:eu-central-1:123456789012:table/ledger,"],
    "LogRetentionDays": ["8", ""],
    "SagaConcurrency": ["1", "1001", "many"],
    "Application": ["Reviews", "a" * 27],
    "CertificateArn": ["arn:aws:acm:eu-central-1:123456789012:certificate/0a1b"],
    "Release": ["", "a release", "a" * 65],
}
TAKEN = {
    "MongoSecretArn": ["", f"{SECRET}:search-import/mongodb-AbCdE1"],
    "PageKeySha256": ["", HASH],
    "MongoUri": ["", "mongodb+srv://db.example/?authSource=%24external&authMechanism=MONGODB-AWS"],
    "MongoDatabase": ["search_import", "si-0a1b-database"],
    "JwtIssuer": ["", "https://id.example/"],
    "AllowedOrigins": ["", "https://review.example", "http://localhost:5173"],
    "SubnetIds": ["", "subnet-0a1b2c3d4e5f60718"],
    "SecurityGroupIds": ["", "sg-0a1b2c3d4e5f60718"],
    "RestoredTables": [",", "ledger,", ",processed", "ledger,processed"],
    "LogRetentionDays": ["7"],
    "SagaConcurrency": ["2", "40"],
    "Application": ["search-import-prod"],
    "CertificateArn": ["", "arn:aws:acm:us-east-1:123456789012:certificate/0a1b"],
    "Release": ["first", "0a1b2c3d4e"],
}


def accepts(parameter: str, value: str) -> bool:
    return DECLARED[parameter].fault(value) is None


class Parameters(unittest.TestCase):
    def test_late_rejections_are_refused_early(self) -> None:
        for parameter, values in REFUSED.items():
            for value in values:
                self.assertFalse(accepts(parameter, value), f"{parameter}={value}")

    def test_other_parameters_are_accepted(self) -> None:
        for parameter, values in TAKEN.items():
            for value in values:
                self.assertTrue(accepts(parameter, value), f"{parameter}={value}")
