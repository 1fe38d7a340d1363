"""Cases of a run worked on by Ray: `cluster` hands them out, `worker` works on them, `shared` is what workers share."""
