"""Mutation checks: small faults are put into the code of a room, and the tests have to notice them.

`make mutants ROOM=decode` draws faults by a fixed list of operators and a fixed seed, runs for each the tests that
execute the changed function, and lists the faults that no test notices. See docs/mutants.md.
"""
