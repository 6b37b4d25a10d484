"""What the tools of documents report to the model in a run: passages and indexes that cannot be used."""

from __future__ import annotations

from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    en={
        "no_passage": "No passage has the id {citation!r}.",
        "no_passage_hint": "Use an id from a search result; the document may have changed since.",
        "file_gone": "{file}: the file is gone.",
        "file_changed": "{file}: the file has changed and no longer contains this passage.",
        "file_changed_hint": "Search again.",
        "file_gone_hint": "Search again.",
        "file_unreadable": "{file}: it cannot be read: {reason}.",
        "file_unreadable_hint": "Check the file.",
        "newer_index": "{index}: this is the index of a newer taoloop; it was not changed.",
        "newer_index_hint": "Upgrade, or name another file.",
        "other_database": "{index}: this is another kind of database; it was not changed.",
        "other_database_hint": "Name a new file for the index.",
        "other_folder": "{index}: this is the index of another folder, {folder}.",
        "other_folder_hint": "Name another file for the index.",
        "unusable": "{index}: the index cannot be used: {reason}.",
        "unusable_hint": "Check permissions and disk space, or name another file for the index.",
        "no_fts5_hint": "This Python's SQLite has no full-text search (FTS5); another build has it.",
        "locked_hint": "Another program has locked it; try again.",
        "damaged_hint": "Delete this file if it is the index, which is built again; otherwise name another.",
    },
    zh={
        "no_passage": "没有 ID 为 {citation!r} 的段落。",
        "no_passage_hint": "请使用搜索结果中的 ID；文档可能已经更改。",
        "file_gone": "{file}：文件已不存在。",
        "file_changed": "{file}：文件已更改，不再包含此段落。",
        "file_changed_hint": "请重新搜索。",
        "file_gone_hint": "请重新搜索。",
        "file_unreadable": "{file}：无法读取：{reason}。",
        "file_unreadable_hint": "请检查该文件。",
        "newer_index": "{index}：这是更新版本的 taoloop 的索引；未作任何更改。",
        "newer_index_hint": "请升级，或指定其他文件。",
        "other_database": "{index}：这是另一种数据库；未作任何更改。",
        "other_database_hint": "请为索引指定一个新文件。",
        "other_folder": "{index}：这是另一个文件夹 {folder} 的索引。",
        "other_folder_hint": "请为索引指定其他文件。",
        "unusable": "{index}：无法使用索引：{reason}。",
        "unusable_hint": "请检查权限和磁盘空间，或为索引指定其他文件。",
        "no_fts5_hint": "此 Python 的 SQLite 不支持全文搜索（FTS5）；请换用支持它的版本。",
        "locked_hint": "另一个程序锁定了它；请重试。",
        "damaged_hint": "如果该文件就是索引，请将其删除，索引会重新建立；否则请指定其他文件。",
    },
)
