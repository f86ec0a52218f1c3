"""What locust reads: the users and the shape of traffic/, which lies beside this file.

locust -f loadtest/locustfile.py --headless --host http://127.0.0.1:8080
"""

from traffic.driver import Wave
from traffic.users import Batch, Chunk, Hostile, Parts, Plan, Single

__all__ = ["Batch", "Chunk", "Hostile", "Parts", "Plan", "Single", "Wave"]
