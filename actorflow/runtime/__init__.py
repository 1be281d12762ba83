"""The async shell: it waits, and carries out what the machines of ``protocol`` decide.

Two walks through the house.

*Follow a record.*  ``source_reader`` hands a chunk to ``actor``, which cuts it into batches and runs them through
``dataflow.chaining``; ``output`` partitions what comes out and fills buffers, ``mailbox`` holds them in bounded
channels, the next ``actor`` takes them, and the last one gives them to a sink's writer.

*Follow a barrier.*  ``checkpointing`` triggers and hands a barrier to the sources, whose actors forward it through
``output`` into every ``mailbox``; ``protocol.alignment`` decides at each actor when all have come; ``snapshots``
takes the instant and writes the rest behind; ``checkpointing`` collects the acknowledgements, ``ownership`` publishes
the manifest under the fence, and ``committer`` commits what the sinks had prepared.

``environment`` is the way in, ``supervisor`` owns the life of a job, ``attempt`` one incarnation of it.
"""
