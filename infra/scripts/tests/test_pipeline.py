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
    def test_jobs_are_as_listed(self) -> None:
        self.assertEqual([*JOBS], ["check", "build", "dev", "review", "prod"])

    def test_actions_are_pinned_by_commit_hash(self) -> None:
        self.assertEqual(unpinned("- uses: actions/checkout@v5"), ["actions/checkout@v5"])
        for workflow in WORKFLOWS:
            self.assertEqual(unpinned(workflow.read_text("utf-8")), [], workflow.name)

    def test_published_programs_are_executable(self) -> None:
        self.assertIn("tar --create --file built.tar .aws-sam", JOBS["build"])
        for job in ("dev", "review", "prod"):
            self.assertIn("tar --extract --file built.tar", JOBS[job], job)

    def test_only_environment_jobs_receive_tokens(self) -> None:
        with_token = {name for name, job in JOBS.items() if "id-token: write" in job}
        with_environment = {name for name, job in JOBS.items() if "    environment: " in job}
        self.assertEqual(with_token, with_environment)
        self.assertEqual(with_token, {"dev", "review", "prod"})

    def test_release_has_an_archive_for_each_platform(self) -> None:
        release = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
        targets = set(re.findall(r"target: ([\w-]+)", release))
        systems = {target.partition("-")[2] for target in targets}
        self.assertEqual(systems, {"unknown-linux-gnu", "apple-darwin", "pc-windows-msvc"})
        self.assertEqual(len(targets), 6)
        _, _, publish = release.partition("  publish:\n")
        self.assertNotIn("checkout", publish, "the job that may write runs no code of the repository")

    def test_only_main_is_deployed(self) -> None:
        self.assertIn("if: github.ref == 'refs/heads/main'", JOBS["check"])
        for job in ("build", "dev", "review", "prod"):
            self.assertIn("    needs: ", JOBS[job], job)
