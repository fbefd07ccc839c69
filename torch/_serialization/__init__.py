"""The parts behind torch.serialization, one topic to a file: the zip container (zip_reader,
zip_writer), the data-only unpickler (safe_unpickler over the fixed table of safe_table), the older
stream format (legacy), devices of storages (locations), atomic replacement of files
(atomic_file), and safetensors. Reading a file is a chain of checks; a file that fails one raises
CheckpointError and nothing else."""
