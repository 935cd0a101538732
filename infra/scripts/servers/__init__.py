"""Servers for the tests: installed below target/services, started on free ports and stopped afterwards.

server.py     the description of a server; mongod.py, dynamodb.py and ministack.py have one each
packages.py   the files of the installed packages
launch.py     starting a server, waiting for it, and stopping it
fleet.py      all servers: starting the missing ones
processes.py  starting and ending processes, and never another one by mistake
data.py       the data folders of servers, including those of killed ones
state.py      the servers that `up` has started, for later commands
variables.py  the environment variables with the addresses of the servers, or of those of the caller
replica_set.py  a replica set of one mongod, by pymongo
"""
