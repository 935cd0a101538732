"""The modules of the programs of infra/ (services.py, tools.py, build.py, deployment.py, diagram.py).

servers/      real servers for the tests: services.py
deployment/   the template on a substitute for AWS: deployment.py

They only require Python's standard library, except that deployment/ also uses the boto3 of sam.
"""
