"""stub"""
from planner.cli.predict import predict as memory
