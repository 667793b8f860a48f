"""Parameter studies: many cases of one mechanism, on this machine's cores or on a cluster, as one dataset."""
