"""`tidalite-bench`: Tidalite beside other databases, on this machine, in turns. See bench/README.md."""
