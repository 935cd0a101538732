"""Reads a file with a Python reader, and prints how many records it found and how long that took, as JSON."""

import json
import sys
import time


def reader(name):
    if name == "rispy":
        import rispy

        return rispy.loads
    import nbib

    return nbib.read


def main():
    name, path = sys.argv[1:]
    read = reader(name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    seconds = []
    for _ in range(3):
        began = time.process_time()
        records = len(read(text))
        seconds.append(time.process_time() - began)
    print(json.dumps({"records": records, "seconds": min(seconds)}))


main()
