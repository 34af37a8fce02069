"""The smallest program that the conformance suite can test. Put your SDK in place of `json`."""

import base64
import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "start":
        answer = {
            "protocol": 1,
            "name": "mine",
            "version": "1.0",
            "language": "python",
            "library": "json",
            "operations": ["canonical"],
        }
    elif request["op"] == "stop":
        break
    else:
        body = base64.b64decode(request["given"]["body_base64"])
        try:  # call your SDK here: decode the body, then encode it
            text = json.dumps(json.loads(body), separators=(",", ":"))
            result = {"bytes_base64": base64.b64encode(text.encode()).decode()}
        except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, nested too deep
            result = {"rejected": str(error)}
        answer = {"id": request["id"], "result": result}
    print(json.dumps(answer), flush=True)
