"""Servers for the tests: installed below target/services, started on free ports, ended by who started them.

server.py     what there is to know of a server; mongod.py, dynamodb.py and ministack.py say it of theirs
packages.py   what the packages they come in have brought
launch.py     starting a server, waiting for it, stopping it
fleet.py      all of the servers: starting those that are missing
processes.py  processes that end when they should, and no others
data.py       the servers' data, and what was left of it by servers that were killed
state.py      what `up` has started, for the calls after it
variables.py  the environment variables that lead to the servers, or to the caller's own
bson.py, mongo.py   MongoDB's protocol, as far as setting up a replica set needs it
"""
