import re
import unittest

from scripts.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEPLOY = (ROOT / ".github" / "workflows" / "deploy.yml").read_text("utf-8")
# A job has two spaces before its name.
JOB = re.compile(r"^  (\w+):\n((?:    .*\n|\n|  #.*\n)+)", re.MULTILINE)
JOBS = dict(JOB.findall(DEPLOY.partition("\njobs:\n")[2]))


def unpinned(workflow: str) -> list[str]:
    used = re.findall(r"uses: (\S+)", workflow)
    return [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)]


class Pipeline(unittest.TestCase):
    def test_has_these_jobs(self) -> None:
        self.assertEqual([*JOBS], ["check", "build", "dev", "review", "prod"])

    def test_names_every_action_by_the_hash_of_a_commit(self) -> None:
        self.assertEqual(unpinned("- uses: actions/checkout@v5"), ["actions/checkout@v5"])
        for workflow in WORKFLOWS:
            self.assertEqual(unpinned(workflow.read_text("utf-8")), [], workflow.name)

    def test_keeps_programs_that_can_be_run(self) -> None:
        self.assertIn("tar --create --file built.tar .aws-sam", JOBS["build"])
        for job in ("dev", "review", "prod"):
            self.assertIn("tar --extract --file built.tar", JOBS[job], job)

    def test_gives_tokens_only_to_jobs_of_an_environment(self) -> None:
        with_token = {name for name, job in JOBS.items() if "id-token: write" in job}
        with_environment = {name for name, job in JOBS.items() if "    environment: " in job}
        self.assertEqual(with_token, with_environment)
        self.assertEqual(with_token, {"dev", "review", "prod"})

    def test_deploys_nothing_but_main(self) -> None:
        self.assertIn("if: github.ref == 'refs/heads/main'", JOBS["check"])
        for job in ("build", "dev", "review", "prod"):
            self.assertIn("    needs: ", JOBS[job], job)
