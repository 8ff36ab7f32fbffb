"""Support code that several packages use; not public.

- Files: `files` (atomic write, lock, cleanup), `reading` (bounded, UTF-8), `strict_json`, `toml`,
  `checksums`, `user_cache`.
- Arguments and settings: `arguments`, `settings` (conversion and checks of values).
- Process: `resources` (memory, cores, threads), `worker_pool` (of this process and others),
  `progress`, `torch_modes` (autocast, transforms), `observers`, `extras` (optional dependencies).
- Messages: `text` (escaping, plurals).
"""
