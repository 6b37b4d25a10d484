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
        "write save store append edit put insert draft add overwrite rewrite",
        "覆盖|重写|改写|写入|写到|写进|写下|写一份|保存|存到|存入|存进|追加|编辑|插入|草拟|起草|添加|加到|加进|放进|放入|补充|写评论|下评论|加评论",
    ),
    (
        (
            "update change modify edit adjust correct rename replace set move reschedule postpone shift"
            " increase decrease fix upgrade downgrade"
        ),
        "更新|修改|更改|改成|改为|改一下|调整|编辑|重命名|改名|移动|改期|推迟|延期|提前|改到|挪到|更正|替换|标记为|标为",
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
    ("run execute start launch deploy restart reboot relaunch reload", "运行|执行|启动|部署|重启"),
    ("approve accept confirm", "批准|同意|确认"),
    ("close end stop terminate disable", "关闭|结束|停止|禁用|关掉|停用"),
    ("remember note keep", "记住|记下"),
    ("copy duplicate", "复制|拷贝|备份"),
    ("shelve", "归档|存档"),
    ("assign", "指派|分派|分配"),
    ("complete finish", "完成|搞定"),
    ("exchange swap replace", "换货|更换|换成|调换|退换|交换"),
)
ACTS = [(words_of(english), frozenset(chinese.split("|"))) for english, chinese in _ACTS]
VERBS = frozenset().union(*(english for english, _ in ACTS))
CHINESE_ACTS = frozenset().union(*(chinese for _, chinese in ACTS))

AMBIGUOUS_VERBS = words_of(
    "email mail message post tweet share file book order plan schedule note answer reply forward transfer wire "
    "purchase return refund set move change edit fix shift rent open close end stop start run launch update draft "
    "text ping dm drop store increase decrease abort drop pay grant register remind copy complete finish reload reboot "
    "exchange swap upgrade downgrade"
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

_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WHEN = (
    rf"(?:the )?(?:next|tomorrow|today|tonight|{_WEEKDAY}|noon|later|an? (?:hour|day|week)"
    r"|\d{1,2}(?::\d\d| ?[ap]m\b| o'clock))"
)
_MONEY = r"(?:money|euros?|eur|dollars?|usd|pounds?|bucks|yuan|rmb)\b"
_HOST = (
    r"(?:servers?|services?|hosts?|machines?|containers?|pods?|process|daemon|router|instances?|nodes?|vm|app|database)"
)
_PHRASES = (
    # what would otherwise be read in parts
    (r"\bset(?:ting)? up\b", "setup"),
    (r"\bstand-?ups?\b", "meeting"),
    (r"(?:^|(?<=[.,;!?\n] ))(?:can|could|shall) we\b|\bwould it be (?:possible|ok(?:ay)?) (?:for you )?to\b", "please"),
    (r"\bstanding orders?\b|\bdirect debits?\b", "payment"),
    # reminders
    (
        (
            r"\b(?:wake|nudge) (?:me|us)\b(?: up)?|\b(?:don't|do not) let (?:me|us) forget\b"
            r"|\bmake sure (?:i|we) (?:don't forget|remember)\b|\bgive (?:me|us) a (?:nudge|reminder"
            r"|wake-?up call|shout)\b"
            r"|\bping (?:me|us)\b(?= (?:at|in|when|about|before|tomorrow|on)\b)"
        ),
        "remind me",
    ),
    (r"\bmake (?:sure|certain)\b", "ensure"),
    # messages
    (r"\blet (?!me\b|us\b)(?:[a-z]+ ){1,6}know\b", "tell \u25a1"),
    (r"\b(?:drop|shoot) (?:[a-z]+ ){1,2}an? (?:line|note|e-?mail|mail|message|text)\b", "send an email"),
    (r"\bthank (?!you\b|god\b|me\b|us\b)([^.,;:!?\n]{1,40}?) for\b", r"send a message to \1 about"),
    (r"\b(?:thank|congratulate) (?=[a-z])(?!you\b|god\b|goodness\b|me\b|us\b)", "send a message to "),
    (
        (
            r"\b(?:(?:get in touch|touch base|check in|follow up) with|(?:reach out|write back|apologi[sz]e"
            r"|circle back) to"
            r"|say (?:hi|hello|thanks|thank you|sorry|yes|no|goodbye|happy birthday) to) (?!me\b|us\b|you\b)"
        ),
        "send a message to ",
    ),
    (
        (
            r"\bgive (?!me\b|us\b)(?=(?:[a-z]+ ){1,3}(?:a|the) (?:heads[- ]up|shout|nudge|reminder|buzz"
            r"|quick update)\b)"
            r"|\bkeep (?!me\b|us\b)(?=(?:[a-z]+ ){1,3}(?:posted|informed|in the loop)\b)"
            r"|\bfill (?!me\b|us\b)(?=(?:[a-z]+ ){1,3}in on\b)"
            r"|\bwish (?!me\b|us\b|you\b|to\b)(?=(?:[a-z]+ ){1,3}(?:an? |all )?(?:happy|merry|good|luck|well)\b)"
        ),
        "tell ",
    ),
    (
        (
            r"\bask (?!(?:me|us|you|for|about|if|whether|to|that|the user)\b)"
            r"(?=(?:[a-z]+ ){1,3}(?:if|whether|to|for|about|when|where|what|how|why|who|which)\b)"
        ),
        "message ",
    ),
    (r"\bremind (?=[a-z])(?!me\b|us\b|you\b)", "tell or remind "),
    (r"\bget back to\b", "reply to"),
    (r"\bpass (?:it|this|that|them) (?:on|along)\b", "forward it"),
    (r"\bannounce (?=(?:in|on|to|that|the|our)\b)", "post "),
    (r"\bloop in\b", "add the participant"),
    # appointments
    (r"\bcall(?:ing)? (?:it |this |that |them )?off\b", "cancel"),
    (
        (
            rf"\b(?:free up|clear(?: out)?) (?=(?:my|our) (?:[a-z]+ )?(?:{_WEEKDAY}s?|morning|afternoon"
            rf"|evening|day|week"
            r"|weekend|calendar|schedule|agenda)\b)"
        ),
        "cancel the event or move it from ",
    ),
    (r"\bpush(?:ing)? (?:it |them )?back\b|\bput(?:ting)? off\b", "postpone"),
    (
        rf"\b(bump|push|pull|bring|move) (?=[^.;!?\n]{{1,40}}?\b(?:to|until|till|by|forward|back) {_WHEN})",
        r"reschedule or \1 ",
    ),
    (r"\bmake (?=[^.;!?\n]{1,40}\b(?:later|earlier)\b)", "reschedule "),
    (
        (
            r"\b(?:put|stick|get(?=[^.;!?\n]{1,40} on the books))\b"
            r"(?=[^.;!?\n]{1,40}\b(?:on|in|into) (?:my|the|our) (?:calendar|agenda|books|diary)\b)"
        ),
        "schedule an event for",
    ),
    (r"\b(?:pencil|slot|squeeze) (?:(?:it|them|him|her|me|us) )?in\b", "schedule an event for"),
    (
        (
            r"\b(?:block|set aside) (?:off |out )?(?:(?:an?|some|two|three|the) )?(?:hours?|time|minutes?|slot|day)\b"
            r"|\bbook (?:an?|some|two|three) (?:hours?|time|minutes?|slot)\b"
        ),
        "schedule an event",
    ),
    # money and orders
    (r"\bpay(?:ing)? (?:(?:it|them|him|her) )?back\b", "refund"),
    (r"\bpay (?=(?:[a-z']+ ){1,3}back\b)", "refund money to "),
    (r"\bsettle up with\b|\bsquare up with\b", "pay"),
    (
        (
            r"\b(?:take care of|sort out|cover|clear|see to|pick up)"
            r" (?=(?:the|my|our|this|that) (?:[a-z]+ ){0,2}(?:bills?|invoices?|rent|fees?|debts?|tab)\b)"
        ),
        "pay ",
    ),
    (rf"\b(?:shift|move) (?=[\d., ]{{0,12}}{_MONEY})", "transfer "),
    (r"\b(?:transfer|send|wire|move) [\d.,]{1,12} (?=(?:to|from|into)\b)", "transfer money "),
    (rf"\bgive (?!me\b|us\b)(?=[^.;!?\n]{{1,20}}\d {_MONEY})", "send "),
    (r"\bsend(?:ing)? (?:(?:it|them|him|her) )?back\b", "return"),
    (
        (
            r"\b(?:give|get) (?:me|us) (?:(?:a|the|my) )?(?:full |partial )?refund\b"
            r"|\b(?:give me|get me) my money back\b"
            r"|\b(?:(?:i|we|you) (?:also |really )?(?:want|need)|i(?:'d| would) like)(?: to (?:get|have|receive))?"
            r" (?:(?:a|the|my) (?:full |partial )?refund|my money back)\b(?! (?:policy|policies|form|receipt|status))"
            r"|\b(?:can|could|may) i (?:please )?(?:get|have) (?:a |my )(?:full |partial )?(?:refund|money back)\b"
        ),
        "please refund",
    ),
    (
        (
            r"\b(?:(?:i|we|you) (?:also |really |still )?(?:want|need|demand|expect|request|ask for)|i'd like"
            r"|i would like|i(?:'m| am) asking for|give (?:me|us)|offer (?:me|us))"
            r"(?: to (?:get|receive|have|be given))? (?:a |some |any |my |the )?(?:full |maximum )?compensation\b"
            r"|\bcompensate (?:me|us|you)\b"
        ),
        "please pay a compensation voucher",
    ),
    (r"\bget me (?=(?:[a-z0-9]+ ){0,3}(?:tickets?|flights?|rooms?|tables?|seats?)\b)", "book "),
    (
        (
            r"\b(?:get|grab|fetch|pick up)(?: me| us)? (?=(?:another|an?|some|\d{1,3}|two|three|four|five|six|ten)"
            r"(?: more| new)? (?:packs?|box(?:es)?|bags?|bottles?|pairs?|dozen|cases?|cartons?|cans?|rolls?"
            r"|kilos?|jars?)\b)"
        ),
        "buy ",
    ),
    (
        (
            r"\bre-?order (?!by\b|(?:the|these|my|all) (?:[a-z]+ ){0,2}(?:lists?|rows?|columns?|pages?|items"
            r"|slides?|files?"
            r"|entries|lines|steps|tasks?|sections?)\b)|\bstock up on\b|\brestock\b"
        ),
        "order ",
    ),
    (
        r"\b(?:ship|deliver) (?:it|them|this|that|(?:the|my|our) (?:order|parcel|package)) to\b",
        "change the order's delivery address to",
    ),
    # files, notes, tasks and issues
    (r"\bget(?:ting)? rid of\b|\bthrow(?:ing)? (?:it |them )?(?:away|out)\b", "delete"),
    (
        (
            r"\b(?:trash|scrap|axe|ditch)\b"
            rf"(?= (?:the|this|that|all|my|our|it|them|(?:today|tomorrow|{_WEEKDAY})'s)(?:\s|[.,!]|$))"
        ),
        "delete",
    ),
    (r"\bhand(?:ing)? (?:it |them )?in\b", "handin"),
    (r"\barchive\b(?= (?:the|this|that|all|everything|my|it|them|old)\b)", "shelve"),  # alone it is a folder
    (r"\bmake a copy\b|\bback(?:ing)? (?:it |them )?up\b", "copy"),
    (r"\b(?:jot|note|write) (?:it |this |that )?down\b", "create a note"),
    (
        (
            r"\b(?:file|log|raise|report|submit) (?:an?|the|this|that)"
            r" (?=(?:new )?(?:bug|issue|ticket|complaint|defect|incident)\b)"
        ),
        "create a ",
    ),
    (r"\bcomment (?=on\b)", "add a comment "),
    (r"\blabel (?=(?:the |this )?(?:issue|ticket|bug|e-?mail|mail)\b)", "add a label to "),
    (r"\bmark (?=[^.;!?\n]{1,30}\b(?:done|completed?|finished)\b)", "complete the task or update "),
    (r"\bmark (?=[^.;!?\n]{1,30}\bas (?:read|unread|paid|resolved)\b)", "update "),
    (
        (
            r"\b(?:tick|cross|strike|check|close) (?:(?:it|this|that|them) )?(?:off|out)\b"
            r"|\b(?:tick|cross|strike) (?=(?:the|my|all) (?:[a-z]+ ){1,4}off\b)"
        ),
        "complete the task or update it ",
    ),
    # services
    (rf"\b(?:bounce|power[- ]?cycle|kick) (?=(?:the|our|my) (?:[a-z0-9-]+ ){{0,3}}{_HOST}\b)", "restart "),
    (
        (
            r"\b(?:bring|get|spin) (?=[^.;!?\n]{1,40}\b(?:back up|back online|up and running|running again)\b)"
            r"|\bturn (?=[^.;!?\n]{1,40}\boff and (?:back )?on\b)"
        ),
        "restart ",
    ),
)
PHRASE_VERBS = tuple((lazy_pattern(pattern), replacement) for pattern, replacement in _PHRASES)
"""Ways to ask for an act, and the plain words that replace them: in this order, in a text in lower case."""

_LEAD = (  # where a request can begin
    r"(?P<lead>^|[，,。.;；！!？?\n、:]\s*|请|帮我|帮忙|替我|代我|麻烦你?|记得|顺便|也|再|然后|去|给我|[里上]|[点分午晚早天]"
    r"|你)"
)
_NUMBER = "[一二两三四五六七八九十百千万几半\\d]"
_CHINESE_PHRASES = (
    # messages
    (
        (
            rf"{_LEAD}(?:跟(?!踪|进|随|着)|和|向|给)(?P<who>(?!我|自己|你)[^，,。.;；！!？?\n]{{1,8}}?)"
            r"(?:说(?!明|法|服|话)|讲(?!话|座|义)|打个?招呼|道个?谢|道个?歉|问个?好|汇报|反馈|请个?假|解释)(?:一下"
            r"|一声)?"
        ),
        r"\g<lead>告诉\g<who> ",
    ),
    (
        (
            rf"{_LEAD}(?:感谢|谢谢|联系(?!方式|人|电话|我|到|地址)|转告|知会|恭喜|祝贺)(?:一下|一声)?"
            r"(?=[^你您啦了啊，,。.;；！!？?\n])"
        ),
        r"\g<lead>告诉",
    ),
    (rf"{_LEAD}祝(?!你|您|我)(?=[^，,。.;；！!？?\n]{{1,8}}(?:快乐|顺利|好运))", r"\g<lead>告诉"),
    (r"(?<=群里|道里)(?:问问?|喊|吼|讲|提)(?:一下|一声)?|(?:去|帮我|替我)问(?:一下|问|下)?(?!题|我)", "发消息 "),
    (r"[回写发](?:一?封|一?条)(?=邮件|信|消息|短信|微信)|回(?:一下)?(?=他|她|小|老)", "发送 "),
    (r"提醒(?:一下)?(?=大家|所有人|他|她|同事|客户|团队|[小老][\u4e00-\u9fff])", "通知一下,提醒"),
    # reminders
    (
        (
            r"(?<=[点分上午晚时候后前早])(?:准时)?(?:叫|喊)(?:醒)?(?=我)|(?:叫|喊)(?=醒我|我起床|我一声)|叫醒(?=我)"
            r"|(?:不要|别)让(?=我(?:忘|错过))"
        ),
        "提醒",
    ),
    # money and orders
    (r"[交缴付]了?(?=(?:一下|掉|上)?[^，,。.;；！!？?\n了]{0,5}(?:费|房租|租金|税|罚单|押金|账单))", "缴"),
    (
        r"(?<=[费租税款单金])[交付缴](?=了(?!吗|没)|一下|掉|上)|(?:费|租|税|账单)也?(?:该)?[交付缴](?=$|[，,。.！!])",
        "缴",
    ),
    (
        (
            r"(?<=[钱账卡款贷呗])还(?=了(?!吗|没)|一下|掉|清|上)|还(?=一下(?:$|[，,。.！!钱款])|信用卡|房贷|车贷|花呗"
            r"|贷款)"
            rf"|还(?=(?!有|是|要|没|能|可|剩)[^，,。.;；！!？?\n的]{{1,5}}{_NUMBER}+[多来]?[百千万块元])"
        ),
        "还款",
    ),
    (rf"[打转汇](?=给?[^，,。.;；！!？?\n]{{0,4}}{_NUMBER}+[多来]?(?:块|元|万|千|百|欧|美元|美金|刀))", "打款"),
    (
        r"充(?:值|点|一?下)?(?=话费|电费|流量|会员)|(?<=[费卡])充(?=一下|点|上|了(?!吗|没))|(?<=账单)结|买单|埋单|结(?:一下)?账|续(?:一下)?费|垫付",
        "付款",
    ),
    (
        (
            rf"(?:再|给我|帮我|替我)+(?:来|点|囤|捎|带|补|添)(?=点?{_NUMBER}*[份杯箱盒包瓶袋件个斤台双套只桶]"
            r"(?![^，,。.;；！!？?\n]{0,8}(?:报告|总结|摘要|清单|列表|分析|名单|介绍|翻译|方案|建议|例子)))|回购|补货|复购|加购"
            r"|下一?单"
        ),
        "购买",
    ),
    (r"(?:我要|想要|要求|给我|申请|索要)(?:一些|一点|点|个)?(?:赔偿|补偿)|(?:赔偿|补偿)(?:给?我们?|一下)", "付代金券"),
    (r"改寄|改送|改发(?=到)|寄到(?=我的?(?:公司|家|办公室|新地址))", "修改订单的地址 "),
    # appointments
    (
        r"不(?:开|去|约|办|订)了|推掉|推了(?!一)|(?:空|腾)出来|腾空|(?:空|腾)出(?=[^，,。.;；！!？?\n]{0,6}[天午晚周])|砍掉",
        "取消 ",
    ),
    (r"往[后前](?:挪|推|移)(?:一?下)?|换到|顺延|[推延调提]到|(?:推|延)后|提前(?=到)", "改期"),
    (
        (
            r"约(?!了|过|会|定|好)(?=[^，,。.;；！!？?\n]{1,8}(?:开会|吃饭|见面|聊|面谈|喝|会面|碰))"
            r"|(?:约|订|定)(?=个?[^，,。.;；！!？?\n]{0,6}(?:会|体检|面试|门诊)(?!员|费|计|展|议室))|排(?=(?:个|一个|一下|一场"
            r"|上)[^，,。.;；！!？?\n]{0,8}(?:会|课|面试|约))"
        ),
        "创建会议 ",
    ),
    # tasks, issues and services
    (r"[勾划]掉|打[勾钩]|勾选|勾上|销掉|(?<=标记为|标记成)已?完成", "完成任务 "),
    (r"(?:报|开|提|建|记)(?:一?个|一?张|一?条)?(?=(?:bug|故障|工单|单子|问题单?|缺陷|issue))|报修", "新建工单 "),
    (r"重新(?:启动|拉起|跑)(?:起来)?|(?:拉|跑|带)起来|重跑|重载", "重启"),
)
CHINESE_PHRASES = tuple((lazy_pattern(pattern), replacement) for pattern, replacement in _CHINESE_PHRASES)
"""The same for Chinese, in a text in normal form."""

_KINDS = {
    "message": (
        "email mail message letter newsletter dm sms text reply inbox",
        "邮件|信件|消息|短信|私信|微信|邮箱|封信|留言",
    ),
    "money": (
        (
            "money payment transaction transfer bill invoice rent amount refund salary fee euro eur dollar buck pound"
            " cash debt"
        ),
        "钱|款|元|金额|账单|房租|租金|费|工资|红包|转账|交易|发票|押金|欠款|税",
    ),
    "file": (
        "file document doc docx folder spreadsheet pdf attachment report slide directory invoice receipt list",
        "文件|文档|报告|表格|附件|文件夹|照片|图片|目录|清单|列表|发票",
    ),
    "event": (
        "event calendar meeting appointment reminder alarm timer agenda call class interview lunch dinner",
        "日程|会议|活动|日历|事件|预约|提醒|闹钟|约会|例会|周会|晨会|家长会|开会|开个会|会面|见面|面试|聚餐",
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
    "voucher": ("voucher certificate coupon compensation", "代金券|优惠券|抵用券|补偿|赔偿"),
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
CHINESE_NAMES = {kind: chinese.partition("|")[0] for kind, (_, chinese) in _KINDS.items()}
"""Of each kind, what it is called in Chinese."""
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
    **dict.fromkeys(words_of("exchange swap"), frozenset({"order"})),
    **dict.fromkeys(words_of("upgrade downgrade"), frozenset({"flight", "train", "hotel", "car", "order", "service"})),
    "remind": frozenset({"event"}),
}
"""What an act is done to if the task does not say it. An act that is not listed may be done to anything."""

VAGUE_ACTS = words_of(
    "make set setup open put add plan register note give move keep file fix drop clear end stop start run "
    "store arrange share shift grant replace increase decrease adjust hand complete finish"
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
