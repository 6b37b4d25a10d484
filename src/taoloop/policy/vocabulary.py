"""The words of acts and of what they are done to, in English and Chinese.

A lexicon and nothing else: it knows no tool and no task. An act has several words ("cancel", "call off", "取消"), and a
thing belongs to a kind ("mail", "邮件"); a word in neither list agrees with everything.
"""

from __future__ import annotations

from taoloop.core.text import lazy_pattern
from taoloop.core.words import split_ending


def words_of(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


_ACTS = (
    (
        "send email mail message write reply respond answer forward tell inform notify post dm text ping",
        "发送|发给|发到|发邮件|发信|寄|回复|回信|回个信|答复|转发|转给|通知|告诉|告知|说一声|发一封|发个|发条|发一条|写信|写邮件|发短信|发消息",
    ),
    ("post publish tweet share upload", "发布|发表|分享|上传|传上去|发帖|贴到|贴出"),
    ("invite add", "邀请|添加|加入|拉进|加到|加进"),
    (
        "create make add setup schedule plan set open register note write put arrange remind",
        "创建|新建|添加|新增|安排|建立|设置|登记|记录|新开|建一个|建个|写一个|写一份|加一个|加个|定个|定一个|提个|提一个|记一下|提醒",
    ),
    (
        "write save store append edit put insert draft add",
        "写入|写到|写进|写下|写一份|保存|存到|存入|存进|追加|编辑|插入|草拟|起草|添加|加到|加进|放进|放入|补充|写评论|下评论|加评论",
    ),
    (
        "update change modify edit adjust correct rename replace set move reschedule increase decrease fix",
        "更新|修改|更改|改成|改为|改一下|调整|编辑|重命名|改名|移动|改期|更正|替换|标记为|标为",
    ),
    ("move rename", "移动|重命名|改名|挪|移到|移至"),
    (
        "delete remove erase drop clear cancel kick purge wipe discard",
        "删除|移除|删|清空|清除|取消|踢|抹掉|丢弃|扔掉|丢掉|去掉",
    ),
    ("cancel delete abort revoke", "取消|撤销|作废|退订"),
    ("reschedule move postpone shift", "改期|推迟|延期|提前|改到|挪到"),
    (
        "pay transfer send refund wire buy purchase settle reimburse return donate",
        "支付|付款|付|转账|转给|汇款|汇给|打给|退款|退货|退还|购买|买|报销|打款|缴|结清|还款|还给|捐",
    ),
    ("schedule pay setup set transfer", "定期|安排|预约|自动付|自动转|自动缴"),
    ("book reserve order rent", "预订|预定|预约|订|下单|租"),
    ("buy order purchase", "购买|下单|买|订购"),
    ("share give grant", "分享|共享|授权|授予"),
    ("submit file handin", "提交|递交|上报|交给"),
    ("run execute start launch deploy restart", "运行|执行|启动|部署|重启"),
    ("approve accept confirm", "批准|同意|确认"),
    ("close end stop terminate disable", "关闭|结束|停止|禁用|关掉|停用"),
    ("remember note keep", "记住|记下"),
    ("copy duplicate", "复制|拷贝|备份"),
    ("shelve", "归档|存档"),
    ("assign", "指派|分派|分配"),
)
ACTS = [(words_of(english), frozenset(chinese.split("|"))) for english, chinese in _ACTS]
VERBS = frozenset().union(*(english for english, _ in ACTS))
CHINESE_ACTS = frozenset().union(*(chinese for _, chinese in ACTS))

AMBIGUOUS_VERBS = words_of(
    "email mail message post tweet share file book order plan schedule note answer reply forward transfer wire "
    "purchase return refund set move change edit fix shift rent open close end stop start run launch update draft "
    "text ping dm drop store increase decrease abort drop pay grant register remind copy"
)
"""Verbs that are nouns or adjectives as well: they count as verbs only where a request can begin."""

LIGHT_VERBS = words_of(
    "make do place issue perform initiate arrange process setup create submit complete execute put schedule"
)
"""Verbs that say little: the act is the noun after them (make a reservation)."""

NOUN_ACTS = {
    "reservation": "reserve",
    "booking": "book",
    "payment": "pay",
    "transfer": "transfer",
    "refund": "refund",
    "purchase": "purchase",
    "order": "order",
    "donation": "donate",
    "invitation": "invite",
    "copy": "copy",
    "cancellation": "cancel",
    "deletion": "delete",
    "removal": "remove",
    "update": "update",
    "reply": "reply",
}
"""Nouns that name an act."""

PHRASE_VERBS = (
    (lazy_pattern(r"\bset(?:ting)? up\b"), "setup"),
    (lazy_pattern(r"\bcall(?:ing)? (?:it |this |that |them )?off\b"), "cancel"),
    (lazy_pattern(r"\bget(?:ting)? rid of\b|\bthrow(?:ing)? (?:it |them )?(?:away|out)\b"), "delete"),
    (lazy_pattern(r"\bhand(?:ing)? (?:it |them )?in\b"), "handin"),
    (lazy_pattern(r"\bpay(?:ing)? (?:(?:it|them|him|her) )?back\b"), "refund"),
    (lazy_pattern(r"\bpush(?:ing)? (?:it |them )?back\b|\bput(?:ting)? off\b"), "postpone"),
    (lazy_pattern(r"\bsend(?:ing)? (?:(?:it|them|him|her) )?back\b"), "return"),
    (lazy_pattern(r"\bmake (?:sure|certain)\b"), "ensure"),
    (lazy_pattern(r"(?:^|(?<=[.!?\n] ))(?:can|could|shall) we\b"), "please"),
    (
        lazy_pattern(
            r"\b(?:give|get) (?:me|us) (?:(?:a|the|my) )?(?:full |partial )?refund\b"
            r"|\b(?:i'd like|i want|i would like|i need|give me|get me) my money back\b"
            r"|\b(?:i'd like|i want|i would like|i need) a (?:full |partial )?refund\b"
        ),
        "please refund",
    ),
    (lazy_pattern(r"\blet (?!me\b|us\b)(?:[a-z]+ ){1,3}know\b"), "tell \u25a1"),
    (lazy_pattern(r"\b(?:drop|shoot) (?:[a-z]+ ){1,2}an? (?:line|note|e-?mail|mail|message|text)\b"), "send an email"),
    (lazy_pattern(r"\bget back to\b"), "reply to"),
    (lazy_pattern(r"\bpass (?:it|this|that|them) on\b"), "forward it"),
    (lazy_pattern(r"\bloop in\b"), "add the participant"),
    (lazy_pattern(r"\btrash\b(?= (?:the|this|that|all|my|it|them)\b)"), "delete"),
    (
        lazy_pattern(r"\bput\b(?=[^.;!?\n]{1,40}\b(?:on|in|into) (?:my|the|our) (?:calendar|agenda)\b)"),
        "schedule an event for",
    ),
    (
        lazy_pattern(r"\bblock (?:off |out )?(?:(?:an?|some|two|three|the) )?(?:hours?|time|minutes?|slot|day)\b"),
        "schedule an event",
    ),
    (
        lazy_pattern(r"\bget me (?=(?:[a-z0-9]+ ){0,3}(?:tickets?|flights?|rooms?|tables?|seats?)\b)"),
        "book ",
    ),
    (lazy_pattern(r"\barchive\b(?= (?:the|this|that|all|my|it|them|old)\b)"), "shelve"),  # alone it is a folder
    (lazy_pattern(r"\bfile an? (?=(?:bug|issue|ticket|complaint)\b)"), "create a "),
    (lazy_pattern(r"\bmake a copy\b|\bback(?:ing)? (?:it |them )?up\b"), "copy"),
    (lazy_pattern(r"\bcomment (?=on\b)"), "add a comment "),
    (lazy_pattern(r"\blabel (?=(?:the |this )?(?:issue|ticket|bug|e-?mail|mail)\b)"), "add a label to "),
    (
        lazy_pattern(r"\bmark (?=[^.;!?\n]{1,30}\bas (?:done|completed?|read|unread|paid|resolved)\b)"),
        "update ",
    ),
    (lazy_pattern(r"\b(?:jot|note|write) (?:it |this |that )?down\b"), "create a note"),
    (lazy_pattern(r"\bstanding orders?\b|\bdirect debits?\b"), "payment"),
)
"""Verbs of several words, and the single word that replaces them."""

_KINDS = {
    "message": (
        "email mail message letter newsletter dm sms text reply inbox",
        "邮件|信件|消息|短信|私信|微信|邮箱|封信|留言",
    ),
    "money": (
        "money payment transaction transfer bill invoice rent amount refund salary fee euro eur dollar cash debt",
        "钱|款|元|金额|账单|房租|租金|费|工资|红包|转账|交易|发票|押金|欠款|税",
    ),
    "file": (
        "file document doc docx folder spreadsheet pdf attachment report slide directory invoice receipt list",
        "文件|文档|报告|表格|附件|文件夹|照片|图片|目录|清单|列表|发票",
    ),
    "event": (
        "event calendar meeting appointment reminder alarm agenda call class",
        "日程|会议|活动|日历|事件|预约|提醒|闹钟|约会|例会|开会|会面",
    ),
    "person": (
        "user member participant attendee guest colleague contact employee people person invitee",
        "用户|成员|人员|同事|参与者|参会|与会|联系人|员工|客人",
    ),
    "channel": ("channel group room thread", "频道|群|讨论组"),
    "hotel": ("hotel room accommodation hostel suite", "酒店|房间|宾馆|民宿|旅馆|客房"),
    "restaurant": ("restaurant table dinner lunch", "餐厅|餐馆|饭店|餐桌|位子|座位"),
    "car": ("car vehicle rental suv", "汽车|租车|车辆|一辆车|轿车"),
    "flight": ("flight plane airline ticket", "机票|航班|飞机|的票|张票"),
    "train": ("train ticket", "火车|高铁|车票|的票|张票"),
    "password": ("password passcode pin credential", "密码|口令"),
    "profile": (
        "info information profile detail account address phone name setting preference",
        "资料|个人信息|信息|地址|电话|账户|账号|设置|姓名",
    ),
    "page": ("webpage website site page article blog post", "网页|网站|文章|帖子|博客|页面|主页"),
    "order": ("order cart product item goods", "订单|购物车|商品|货"),
    "todo": ("task todo ticket issue bug", "任务|待办|工单|问题单|bug"),
    "note": ("note memo", "笔记|备忘|便签"),
    "comment": ("comment", "评论"),
    "label": ("label", "标签"),
    "record": ("record row entry table database", "记录|条目|数据库|数据"),
    "service": ("server service host machine process job container deployment", "服务器|服务|主机|进程|容器"),
}
KIND_OF: dict[str, frozenset[str]] = {}
for _kind, (_english, _) in _KINDS.items():
    for _word in _english.split():
        KIND_OF[_word] = KIND_OF.get(_word, frozenset()) | {_kind}
CHINESE_KINDS: dict[str, frozenset[str]] = {}
for _kind, (_, _chinese) in _KINDS.items():
    for _word in _chinese.split("|"):
        CHINESE_KINDS[_word] = CHINESE_KINDS.get(_word, frozenset()) | {_kind}

CARRIERS = frozenset({"message", "channel", "page"})
"""Kinds of things that carry other things: a report is sent by mail, money is not."""

TALK_VERBS = words_of("send email mail message reply respond answer forward tell inform notify dm text ping")
_TALK_KINDS = frozenset({"message", "channel"})
USUAL_KINDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(TALK_VERBS, _TALK_KINDS),
    **dict.fromkeys(words_of("pay wire settle reimburse donate"), frozenset({"money"})),
    "refund": frozenset({"money", "order"}),
    "transfer": frozenset({"money", "file"}),
    "write": frozenset({"message", "channel", "file", "note"}),
    "post": frozenset({"message", "channel", "page"}),
    "publish": frozenset({"page", "file"}),
    "tweet": frozenset({"message", "page"}),
    "return": frozenset({"money", "order"}),
    "invite": frozenset({"person", "event", "channel"}),
    "postpone": frozenset({"event"}),
    "reschedule": frozenset({"event"}),
    "schedule": frozenset({"event"}),
    "save": frozenset({"file", "note"}),
    "append": frozenset({"file", "note"}),
    "buy": frozenset({"order", "flight", "train"}),
    "purchase": frozenset({"order", "flight", "train"}),
    "rename": frozenset({"file"}),
    "remind": frozenset({"event"}),
}
"""What an act is done to if the task does not say it. An act that is not listed may be done to anything."""

VAGUE_ACTS = words_of(
    "make set setup open put add plan register note give move keep file fix drop clear end stop start run "
    "store arrange share shift grant replace increase decrease adjust hand"
)
"""Acts that ask for a tool only together with what it acts on: alone they say too little."""

USUAL_CHINESE_KINDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_ACTS[0][1].split("|"), _TALK_KINDS),
    **dict.fromkeys(_ACTS[10][1].split("|"), frozenset({"money"})),
    **dict.fromkeys(words_of("购买 买 下单 订购"), frozenset({"order", "flight", "train", "money"})),
    **dict.fromkeys(words_of("发布 发表 发帖 贴到 贴出"), frozenset({"page", "message", "channel"})),
    **dict.fromkeys(words_of("改期 推迟 延期"), frozenset({"event"})),
    "邀请": frozenset({"person", "event", "channel"}),
    **dict.fromkeys(("退款", "退货", "退还"), frozenset({"money", "order"})),
    **dict.fromkeys(("写评论", "下评论", "加评论"), frozenset({"comment"})),
    "提醒": frozenset({"event"}),
    "记一下": frozenset({"note"}),
}
"""The same for Chinese."""

VAGUE_CHINESE_ACTS = words_of(
    "添加 加入 安排 建立 设置 登记 记录 定期 预约 提前 分享 共享 移动 挪 移到 移至 挪到 加到 加进 拉进 订 租 付 买 "
    "执行 启动 运行 结束 停止 确认 同意 记下 保存 补充 改到 改为 改成 替换 交给 调整 转给 "
    "定个 定一个 提个 提一个 放进 放入 标记为 标为 传上去"
)
"""Chinese acts that say too little alone."""

_STEMS = frozenset((*VERBS, *KIND_OF, *NOUN_ACTS)) - {"booking"}  # which is "book" before it is a noun


def stem(word: str) -> str:
    """The stem of an English word, by the words that are listed here."""
    return stem_and_ending(word)[0]


def stem_and_ending(word: str) -> tuple[str, str]:
    """The stem, and which ending was taken from it: `ing`, `ed` (a past), `s` or none."""
    return split_ending(word, _STEMS)
