"""A small English–Chinese lexicon: words of both languages that mean the same for choosing a tool.

Plain data. One line per concept: its name, English words (`_` joins two words), `|`, Chinese words.
"""

from __future__ import annotations

_TABLE = """
time: time clock hour hours minute o'clock datetime what_time | 时间 几点 时刻 点钟 小时 小时数 分钟 报时 钟
date: date day today calendar weekday | 日期 星期 几号 哪天 星期几 几月
days: days | 多少天 天数 几天
zone: timezone zone tz time_zone | 时区
weather: weather forecast rain raining rainy sunny snow snowing wind windy hot cold umbrella humidity climate \
temperature how_hot how_cold warm warmer hotter colder cooler | 天气 气温 下雨 下雪 预报 热 冷 刮风 湿度 带伞 温度 晴
temperature: temperature celsius fahrenheit kelvin degree warm warmer hot hotter cold colder cool cooler \
| 热 冷 暖 凉 气温 温度 摄氏 华氏 摄氏度 华氏度 度数
calc: calculate calculator calculation compute evaluate arithmetic math mathematical expression formula \
| 计算 计算器 算 算出 算术 求值 表达式 算式 数学 运算 四则运算
add: add plus sum addition total adder | 加 加上 相加 求和 总和 之和 加法 合计
subtract: subtract minus difference subtraction | 减 减去 相减 之差 减法 差值
multiply: multiply times product multiplication | 乘 乘以 相乘 乘积 之积 乘法
divide: divide division quotient ratio | 除以 相除 除法 除
power: power exponent square cube squared cubed raise exponentiation | 平方 立方 次方 幂 乘方
root: root sqrt | 平方根 开方 根号
average: average mean | 平均 平均值 平均数 均值
search: search find look seek query lookup | 搜索 查找 搜 检索 搜寻 找 查询 寻找 查
lookup: lookup look_up fetch retrieve key record table value look | 查询 查 查一下 查阅 取值 键 键值 查表 数据表 查出
read: read open show display content contents view cat say says | 读取 读 打开 查看 显示 内容 阅读 读出 读一下
write: write save store overwrite put | 写 写入 保存 存入 写到 写进 存到 存为 写下
append: append | 追加
create: create make new generate build | 创建 新建 建立 生成 添加
update: update change edit modify set | 更新 修改 编辑 设置 更改
delete: delete remove erase drop wipe clear destroy | 删除 删掉 删了 移除 清除 清空 删
move: move rename | 移动 重命名 改名
copy: copy duplicate | 复制 拷贝
send: send deliver forward post_to | 发送 发 寄 发给 发出 寄给 发个 发一封
email: email mail e-mail inbox | 邮件 邮箱 电子邮件
message: message sms chat slack notify notification | 消息 短信 通知
file: file document txt filename | 文件 文档
folder: directory folder dir workspace | 目录 文件夹 工作区
list: list enumerate listing | 列出 列表 清单 有哪些 列举 哪些
count: count number many how_many length counter | 数 统计 数量 计数 个数 几个 多少个 几行 总数 数一下 数数
word: word | 单词 词 字数 词数 个词
line: line row | 行 行数 几行
character: character letter | 字符 字母
text: text string sentence paragraph | 文本 文字 句子 字符串 这段
translate: translate translation translator | 翻译 译 译成 翻译成
language: language english chinese french german spanish japanese | 语言 英语 英文 中文 法语 德语 日语 西班牙语
price: price cost quote how_much worth fare cheap cheaper expensive | 贵 便宜 价格 多少钱 股价 报价 价钱 票价
stock: stock share ticker equity | 股票 股价 股市
currency: currency exchange money forex dollar euro yuan yen cash rate | 货币 汇率 外汇 兑换 币种 钱
convert: convert conversion converter exchange | 换算 转换 兑换 换成 转成 换 折合 转为 合多少
unit: unit kilometer kilometre km mile kg pound celsius fahrenheit meter metre foot feet inch gram liter litre \
| 单位 公里 英里 千克 公斤 磅 摄氏 华氏 米 英尺 英寸 克 升
length: length kilometer km mile meter foot feet inch | 长度 公里 英里 米 英尺 英寸
weight: weight kg kilogram pound gram | 重量 公斤 千克 磅 体重
distance: distance far how_far away apart | 距离 多远 相距
route: route direction navigate navigation drive | 路线 导航 怎么走
place: city place location town where address | 城市 地点 位置 地方 地址 哪里 在哪
country: country nation | 国家
capital: capital | 首都
population: population inhabitant resident people_live live_in lives_in | 人口 居民
book: book novel library isbn author | 书 图书 书籍 小说 作者 图书馆 本书
paper: paper publication journal arxiv | 论文 文献 期刊
movie: movie film cinema | 电影 影片
music: music song album artist | 音乐 歌曲 歌
news: news headline | 新闻 头条
recipe: recipe cook cooking dish | 菜谱 食谱 做菜 做法
restaurant: restaurant eat dinner | 餐厅 饭店 餐馆
hotel: hotel accommodation | 酒店 宾馆 旅馆
flight: flight airline plane fly airport | 航班 机票 飞机 机场
train: train railway | 火车 高铁 列车
reserve: reserve reservation booking book_a book_an book_me | 预订 预定 订
buy: buy purchase order_a checkout | 购买 买 下单 订购 采购
pay: pay payment transfer refund remit | 打款 转给 支付 付款 转 转账 退款 汇款
order: order shipment parcel package tracking delivery | 订单 快递 物流 包裹 订购
user: user account profile member | 用户 账号 账户 成员
salary: salary wage income earn earns paid | 工资 薪水 月薪 薪资 收入 年薪
manager: manager boss supervisor | 经理 上司 主管 老板 领导 上级
age: age old older younger oldest youngest how_old | 年龄 几岁 多大 大几岁 小几岁 岁
inventory: inventory stock in_stock warehouse | 库存 存货 现货
total: total amount sum_total amount_due | 总额 总价 金额 总金额 合计
replace: replace substitute swap | 替换 换成 改成 替换成 替换为 改为 换为
contain: contain contains include occurrence | 包含 含有
compare: compare comparison versus vs | 比较 对比 相比
explain: explain explanation | 解释 讲解
sing: sing | 唱歌 唱首 唱
play: play | 播放
encrypt: encrypt encryption cipher | 加密
decrypt: decrypt decryption | 解密
compress: compress zip_up | 压缩
install: install installation | 安装
recommend: recommend suggest recommendation | 推荐
predict: predict prediction | 预测
rewrite: rewrite rephrase paraphrase polish | 改写 润色
publish: publish publication | 发布 发表
height: height elevation altitude tall taller tallest higher how_high how_tall | 高度 海拔 多高 身高 高多少
weight: heavy heavier mass | 质量 重 多重
lamp: lamp light bulb | 灯 电灯
table: table | 表 表格 数据表
invoice: invoice bill receipt | 发票 账单
bond: bond treasury | 国债 债券
yield: yield interest interest_rate | 收益率 利率
room: room | 房间
leave: leave vacation absence | 请假 年假 休假
binary: binary | 二进制
hexadecimal: hexadecimal hex | 十六进制
server: server host machine | 服务器 主机
employee: employee staff colleague | 员工 职员 同事
contact: contact phone telephone | 联系人 电话 手机
post: post posts article blog | 帖子 帖 发帖 文章 博客 发帖数
event: event meeting appointment schedule | 日程 会议 约会 活动 安排
remind: remind reminder alarm | 提醒 闹钟
task: todo task | 待办 任务
note: note memo | 笔记 便签 备忘
random: random dice coin roll | 随机 骰子 掷 抛硬币
summary: summarize summarise summary | 总结 摘要 概括
reverse: reverse backwards | 反转 颠倒 倒过来
upper: upper uppercase capitalise capitalize | 大写
lower: lower lowercase | 小写
sort: sort order_by sorted | 排序 排列 降序 升序 排好
web: web internet online google wikipedia wiki | 网上 网络 互联网 百科 维基 上网
page: url page website link webpage site | 网址 网页 链接 网站
run: run execute command shell script | 运行 执行 命令 脚本
status: status state health | 状态
log: log logs | 日志
database: database sql | 数据库
image: image picture photo draw | 图片 照片 图像 画
prime: prime | 质数 素数
factorial: factorial | 阶乘
password: password | 密码
hash: hash checksum md5 sha | 哈希 校验和
id: id identifier | 编号 标识
definition: define definition meaning dictionary | 定义 含义 词典 字典 意思
holiday: holiday festival | 节日 假期
policy: policy rule handbook guideline | 政策 规定 制度 手册
tax: tax vat | 税 税费 增值税
bmi: bmi | 体质指数
customer: customer client | 客户 顾客
fibonacci: fibonacci | 斐波那契 斐波那契数
gcd: gcd greatest_common common_divisor greatest_common_divisor | 最大公约数
lcm: lcm least_common common_multiple | 最小公倍数
mortgage: mortgage | 房贷 按揭 贷款
monthly: monthly per_month | 每月 月供
annual: annual yearly per_year | 每年 年度
vowel: vowel | 元音
atomic: atomic | 原子
gate: gate | 登机口
delay: delay delayed late | 晚点 延误 误点
stroke: strokes stroke_count | 笔画 笔划
sensor: sensor | 传感器
reading: reading measurement | 读数 测量值
density: density dense | 密度
area: area surface | 面积 平方米 平方公里 平方千米 平米
score: score grade exam_result | 成绩 分数 得分 考分 考了 考得 多少分
rating: rating ratings rated review reviews | 评分 打分 评价 评论 口碑
exam: exam examination test quiz | 考试 测验 考
subject: subject course class lesson | 科目 课程 课
student: student pupil | 学生 同学
teacher: teacher professor lecturer | 老师 教师 教授
school: school university college | 学校 大学
maths: math maths | 数学
physics: physics | 物理
chemistry: chemistry | 化学
disk: disk disks drive storage | 磁盘 硬盘 存储
used: used usage use_of consumption | 用了 使用量 使用率 用量 占用 用掉
memory: memory ram | 内存
cpu: cpu processor | 处理器
network: network connection bandwidth | 网络 带宽
moon: moon lunar | 月亮 月相 月球
sun: sun sunrise sunset solar | 太阳 日出 日落
phase: phase | 月相 阶段 相位
river: river stream | 河 江 河流
level: level | 水位 等级 级别
water: water | 水 水位
calories: calorie calories kilocalorie kcal energy nutrition | 卡路里 热量 大卡 营养 千卡
food: food meal ingredient | 食物 食品 食材
parking: park parking garage | 停车 停车场 车位
fee: fee charge fine toll | 费用 收费 罚款 罚金 费 手续费
bus: bus buses coach | 公交 公交车 巴士 班车
departure: departure departures depart | 出发 发车 下一班 班次
station: station stop terminal | 车站 站 站点 地铁站
metro: metro subway underground | 地铁
loan: loan borrow borrowed lend mortgage | 借阅 借 贷款 借款 借了
renew: renew extend renewal | 续借 续期 续订 续费
department: department team division | 部门 团队 科室
balance: balance | 余额 结余
bank: bank | 银行
rent: rent rental lease | 租金 房租 租
house: house home apartment property estate | 房子 房价 房屋 住宅 公寓 房产
car: car vehicle automobile | 车 汽车 车辆
fuel: fuel petrol gasoline gas | 油价 汽油 油耗 燃油
air: air aqi air_quality pollution | 空气 空气质量 污染
earthquake: earthquake quake | 地震
patient: patient | 病人 患者
doctor: doctor physician | 医生 大夫
hospital: hospital clinic | 医院 诊所
medicine: medicine drug medication dose dosage | 药 药品 药物 剂量 用药
animal: animal pet species | 动物 宠物
plant: plant flower tree | 植物 花 树
planet: planet | 行星
star: star constellation | 恒星 星座
team: team club | 球队 队
match: match game fixture | 比赛 赛事
winner: winner won champion champions | 冠军 获胜 赢
poem: poem poetry verse | 诗 诗歌 古诗 唐诗
idiom: idiom proverb saying | 成语 谚语 俗语
synonym: synonym synonyms thesaurus | 同义词 近义词
joke: joke funny | 笑话
color: color colour | 颜色 色
member: member membership card_holder | 会员 读者证
warranty: warranty guarantee | 保修 质保
discount: discount sale_price coupon promotion | 折扣 优惠 打折
contract: contract agreement | 合同 协议
meeting_room: meeting_room conference_room | 会议室
ticket: ticket tickets | 票 门票 车票 工单
assignee: assignee assigned assign responsible | 负责 负责人 指派 经办 经办人
close: close closed | 关闭 关掉 关上
turn: turn_the turn_on turn_off switch toggle | 打开 关掉 关上 开启 关闭
queue: queue waiting | 排队
version: version release | 版本
ping: ping latency | 延迟
backup: backup backups | 备份
certificate: certificate cert | 证书
stop_service: stop halt cancel shutdown | 停止 取消 关闭
start_service: start launch restart | 启动 开启 重启 重新启动
"""

_CHANGES = """
@write @append @create @update @delete @move @copy @send @buy @pay @reserve @run @remind @stop_service @start_service
"""
CHANGES = frozenset(_CHANGES.split())
"""Concepts of an act that changes the world: such a tool is called only when the task asks for the act."""

ENGLISH: dict[str, tuple[str, ...]] = {}
CHINESE: dict[str, tuple[str, ...]] = {}
for _line in _TABLE.replace("\\\n", " ").strip().splitlines():
    _name, _, _words = _line.partition(":")
    _english, _, _chinese = _words.partition("|")
    for _target, _listed in ((ENGLISH, _english), (CHINESE, _chinese)):
        for _word in _listed.split():
            _key = _word.replace("_", " ")
            if "@" + _name not in _target.get(_key, ()):
                _target[_key] = (*_target.get(_key, ()), "@" + _name)

ATTRIBUTES = {
    "发帖数": "post_count", "帖子数": "post_count", "文章数": "article_count", "粉丝数": "follower_count",
    "关注数": "following_count", "点赞数": "like_count", "评论数": "comment_count", "用户数": "user_count",
    "价格": "price", "人口": "population", "首都": "capital", "邮箱": "email", "年龄": "age", "名字": "name",
    "姓名": "name", "城市": "city", "状态": "status", "等级": "level", "余额": "balance", "库存": "stock",
    "版本": "version", "面积": "area", "高度": "height", "电话": "phone", "地址": "address", "作者": "author",
    "工资": "salary", "经理": "manager", "总额": "total",
    "发帖数量": "post_count", "帖子数量": "post_count", "粉丝数量": "follower_count",
}  # fmt: skip
"""Names of record fields, for keys such as `huala.post_count`."""

_STOP_ENGLISH = (
    "a an the of in on at to for from by with and or is are was be been do does did it its this that these those "
    "me my i you your we us our please can could would will shall should what which who whom how when why there "
    "here tell give get let know want need like just now current currently right some any all as if then so than "
    "up out about into over after before also too very much more most one tool use using user's what's it's i'm "
    "return returns given gives get's optional default e.g such tools between per via not no only must hello hi "
    "help thanks thank okay ok s t re ve see say"
)
STOP_ENGLISH = frozenset(_STOP_ENGLISH.split())
STOP_CHINESE = (
    "请问", "帮我", "帮忙", "麻烦", "一下", "我想", "我要", "想要", "知道", "告诉我", "告诉", "给我", "什么样",
    "怎么样",
    "怎样", "如何", "什么", "多少", "是否", "现在", "当前", "今天", "目前", "此刻", "可以", "需要", "使用", "返回",
    "用于",
    "给定", "工具", "时候", "一个", "这个", "那个", "请", "吗", "呢", "吧", "啊", "的", "了", "我", "你", "您", "是",
    "在", "把", "将", "和", "与", "或", "及", "里", "中", "上", "有", "个", "并", "就", "也", "都", "为", "以", "到",
    "对", "给", "从", "用", "关于", "有关", "还剩", "还剩下", "剩下", "剩余", "还有", "还要", "到底", "究竟",
)  # fmt: skip
