"""Other words for the same thing, as people ask for what an interface does: verbs, nouns, and Chinese in English. Pure.

Documents say `delete` and `message` where people say `throw away` and `post`. Each line of a table has the words that
people use, a colon, and the words of interfaces; `/` separates alternatives of several words. It is general vocabulary,
for no interface in particular.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from taoloop.core.ranking.porter import porter_stem
from taoloop.core.words import name_words

_VERBS = """
list get show find fetch retrieve read view see lookup query browse display
create add new make post insert register build generate
update change edit set modify patch put alter adjust
delete remove cancel drop erase discard clear destroy unset
search find query filter
send post publish deliver
start begin run launch execute trigger
stop end cancel abort terminate halt
copy duplicate clone
upload import attach
download export
rename name title
move transfer
check verify validate test
approve accept allow grant permit
reject deny refuse decline
enable activate
disable deactivate
open unlock
close lock
join enter
leave exit quit
invite add
assign give grant add
"""

_NOUNS = """
message post text note
user member account profile
group team
photo image avatar icon
image picture photo
comment remark reply
file document attachment
channel conversation room chat
server guild workspace
folder directory
order purchase
customer client
product item article
invoice bill
price cost amount
payment charge
role permission
key token secret credential
event log history
audit log history
webhook subscription callback
call phone telephone
recording audio
transcription transcript
vector embedding
point record entry row
collection table
snapshot backup
node peer
index search
version revision history
tag label
link url permalink
email mail
status state
setting config preference option
schedule plan
reaction emoji
request query
usage consumption statistics
limit quota
address location
project workspace
team organization company
task job
alert notification trigger
"""

_ASKED = """
throw out/throw/thrown/kick/kick out: remove delete kick
throw away/get rid of/wipe/drop/purge: delete remove
take away/revoke: remove delete revoke unassign
give back/release: delete remove release
hang up: end hangup update call
ring/ring up/dial/phone: call create
put on hold/on hold: pause hold
go on/continue: resume
how many/number: count total size
how much: cost usage amount balance
money/funds/credit: balance credit
spend/spent/spending/pay/paid/expense: cost usage payment billing
who am i/logged in: me self identity current auth
whose/who/somebody/someone/person/people/colleague/friend/teammate: user member
everybody/everyone: all users members
tell/write: send post message
write to: send message dm
privately/private/in private: direct dm private
talk/chat: message conversation
text message/sms/mms: message sms
picture/draw/drawing/photo/paint: image
film/movie/clip: video
voice/sound/speak/read aloud/aloud/say/spoken: speech audio voice
song/music: audio sound
speech to text/dictation: transcription transcript
hateful/violent/offensive/abusive/harmful: moderation
react/reacted/reacts: reaction
train/training/teach: fine tuning train
knowledge base: vector store file
thumbs up/like/likes: reaction vote
bookmark/favourite/favorite: star bookmark
ban/block/blocked: ban block
let in/let into/let/access: invite add allow
share: share upload invite
link: url permalink invite
nickname/nick: name member
what happened/happened: audit log history event
plan/planned/meeting/appointment/party: schedule event
remind: reminder
vote/votes: poll
answers/replies: reply replies thread
disturb/silence/quiet: dnd snooze mute
online/available/away: presence status
status/mood: profile status presence
popup/dialog/form/window: view dialog modal
logged/logins/login/sign in/signed in: access log session login
sign out/log out/logout/signed out: session invalidate reset logout
alive/running/up/healthy: health status ready live
back up/backup/save a copy: snapshot backup export
faster/speed up/accelerate: index optimize
page through/everything: list all
similar/alike/nearest/closest: search query similar recommend
metadata/properties/attributes: metadata payload attributes
exist/exists/already: exists check
earlier/older/previous/past/former: history version previous archived
be told/notify/notified/tell me/let me know: webhook notification subscribe
warn/alarm: alert trigger notification threshold
png/jpg/svg/render: image export render
colour/color/colors/colours: color style variable
waiting/in line/wait: queue waiting
toll free/tollfree: toll free
parcel/delivery/shipment: shipment delivery parcel
buy: create purchase order
sell: sale order
typo/correct/fix/reword: update edit
answer/reply/respond: reply response comment
bytes: content download file
company/firm: organization account team
cheap/expensive: price cost
undo/restore/bring back: restore undo unarchive revert
archive: archive
hide: archive hide private
rights/allowed: permission role access
admin/administrator/owner: admin owner
password: password credential secret
today: today daily
yesterday: yesterday daily
monthly/last month/this month: month monthly
"""

_CHINESE = """
删除 移除 去掉 清除 删掉 撤下: delete remove
取消 撤销 中止: cancel
批量 成批: bulk batch
创建 新建 建立 建一个 生成 制作 开一个: create
添加 新增 增加 加入 加一个 加个 加到: add create
更新 修改 编辑 更改 改成 改为 调整: update edit modify
设置 设定 配置: set update settings
列出 列表 有哪些 哪些: list
查看 查询 获取 看看 显示 读取 得到 看一下: get list retrieve fetch
查找 搜索 检索 寻找 找到 查一下 找出: search find lookup query
发送 发一条 发条 发布 发出 发到 发给: send create post
发表 提交: post create submit
上传: upload create file
下载 导出: download export get content
导入: import
启动 开始 运行 执行: start run create execute
停止 结束 终止 关闭: stop end close cancel
暂停: pause
继续 恢复: resume restore recover
挂断: hangup end update
打电话 打一个电话 拨打 拨号 呼叫 致电: create call
邀请: invite
踢出 踢 赶出 请出: kick remove delete
封禁 禁止 拉黑 封号: ban block
解封 解禁: unban
静音 禁言: mute
归档 存档: archive
取消归档: unarchive
复制 拷贝: copy duplicate clone
移动 转移: move transfer
重命名 改名 改名字: rename update
分享 共享: share
批准 同意 审批: approve accept
拒绝 驳回: reject deny
启用 激活 开启: enable activate
停用 禁用: disable deactivate
验证 校验 检查: check verify validate
统计 数量 多少 几个 计数 总数: count total
定时 预约 计划 安排: schedule
提醒: reminder
标记: mark
置顶 固定: pin
收藏 星标: star
回复 回应: reply response
转成 转换 变成: convert transcription
翻译: translation translate
支付 付款 缴费: payment
购买 买: buy create purchase
订阅: subscription subscribe webhook
登录 登陆: login access session
退出 登出 注销: logout leave session
离开: leave
加群 进入: join
分配 指派 授予: assign add
用户 人员 某人 账号: user member account
成员 会员: member user
同事: user member
客户 顾客: customer client
联系人: contact
组织 公司 企业: organization team company
团队 小组: team group
群组 群: group channel
服务器: server guild
频道: channel conversation
会话 对话 聊天: conversation chat session
消息 信息: message
短信: message sms
彩信: message mms media
私信 私聊: dm direct message
电话 通话: call phone
号码 电话号码: phone number
会议: conference meeting
录音: recording
语音 声音: audio speech voice
音频: audio
文字 文本: text transcription
转录 听写: transcription
图片 图像 照片 图: image picture photo
视频: video
文件 文档: file document
文件夹 目录: folder directory
附件: attachment media
评论 批注 留言: comment
表情: emoji reaction
点赞 回应表情: reaction
角色: role
权限: permission
密钥 令牌: key token
日志 记录: log history record
审计: audit
历史 过去: history
版本: version
余额: balance
账户 帐户: account
用量 使用量 使用情况 流量: usage
费用 花费 成本 花了: cost usage
账单 发票: invoice bill billing
价格: price
订单: order
商品 产品: product item
库存: inventory stock
地址: address
邮箱 邮件 电子邮件: email
链接 网址: link url permalink
头像: avatar photo icon
名称 名字: name
状态: status state presence
在线: presence online
主题 话题: topic
标签: tag label
类型: type
类: class
违规 敏感 不良: moderation
模型: model
向量: vector point
相似 类似 相近: similar search query
集合: collection
数据点 点: point
快照 备份: snapshot backup
索引: index
过滤 筛选 符合条件 条件: filter
集群 节点: cluster node peer
分片: shard
数据库: database
任务: job task batch
批处理: batch
微调 训练: fine tuning
提示词: prompt
嵌入: embedding
助手: assistant
线程: thread
项目: project
组件: component
样式: style
变量: variable
设计 设计稿 设计文件: file design
网络钩子: webhook
通知: notification
事件 活动: event
投票: poll
贴纸: sticker
应用 应用程序: application app
命令: command
机器人: bot
队列 排队: queue
证书: certificate
限额 配额 限制: limit quota
预算: spend limit budget
昨天: yesterday
今天: today
本月 这个月: this month monthly
上个月 上月: last month monthly
每天 每日: daily
天气: weather
城市: city
时间: time
地图: map
路线: route direction
用户组: usergroup group
工作区: workspace team
健康 存活: health
可用 可以用: available list
描述: description
内容: content
评价 反馈: feedback
"""


@cache
def synonyms() -> Mapping[tuple[str, ...], Mapping[str, float]]:
    """The stems that stand for an asked word or phrase (a tuple of stems), and how much each counts beside it."""
    table: dict[tuple[str, ...], dict[str, float]] = {}
    for lines, weight in ((_VERBS, 0.5), (_NOUNS, 0.5)):
        for line in lines.strip().splitlines():
            group = [porter_stem(word) for word in line.split()]
            for word in group:
                entry = table.setdefault((word,), {})
                entry.update({other: max(weight, entry.get(other, 0.0)) for other in group if other != word})
    for line in _ASKED.strip().splitlines():
        asked, _, meant = line.partition(":")
        stems = [porter_stem(word) for word in meant.split()]
        for phrase in asked.split("/"):
            key = tuple(porter_stem(word) for word in name_words(phrase))
            entry = table.setdefault(key, {})
            entry.update({stem: max(0.7, entry.get(stem, 0.0)) for stem in stems if (stem,) != key})
    return table


@cache
def chinese_words() -> Mapping[str, tuple[str, ...]]:
    """The English stems for a Chinese word."""
    table: dict[str, tuple[str, ...]] = {}
    for line in _CHINESE.strip().splitlines():
        words, _, english = line.partition(":")
        table.update(dict.fromkeys(words.split(), tuple(porter_stem(word) for word in english.split())))
    return table
