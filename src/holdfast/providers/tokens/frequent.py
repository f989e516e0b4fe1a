"""Words that nearly every tokeniser has as one token, so that an estimate need not guess them by their length.

Taken by how often they occur in English and in source code, and kept where sixteen tokenisers agree on one token. More
words would make the estimate of English a little lower and the look-up no slower; these cover about half of a text.
"""

from __future__ import annotations

FREQUENT = frozenset(
    b"""
about above absent accept access according across act action actions active activity acts actually add added
additional address adds advanced after again against age agent agree agreed agreement ai alias align all allow allowed
allows alone along alpha already also alt alternative always am among an and another answer any anything apart api app
appear append applicable application applications applies apply approved arbitrary arch are arg args argument
arguments around array article as ask asked asking asks assert assets assistant associated assume async at attach
attached attempt attribute attributes audience author authors auto automatically available avoid await away back
backend background backup bad bar base based basic basis batch be because been before begin behind being belongs below
ben beside best beta better between big bin binary bind bit bits blank blob block body book bool boolean both box
branch break bring brings buf buffer bug build building built bundle business but by byte bytes cache call called
caller calls came can cannot carry case cases catch cause caused cd center chain change changed changes changing char
character characters charge chat check checking checks child children choose chosen city claim claims class classes
clause clean clear click client clock clone close code collection color column columns com combination come comes
coming command commands comment commit common community compare compared compatibility compatible compile compiled
compiler complete completion computer condition conditions config configuration configure conflict connection
consistent console const constructor contact contain containing contains content contents context continue contract
contribution contributions control conversation convert copies copy core correct corresponding cost costs could count
country counts coverage covered crash create created cross current currently custom cut damage data database date
dates datetime daughter day days db de deal debug decide decision declaration declare decode def default defaults
define defined definition definitions dependencies dependency depends deploy derivative derived description design
designed details dev developer developers development dict did didn different dimension dir direct direction directly
directory disable disk display dist distributed distribution div do doc document documentation does doesn don done
double down download driver drop due during dynamic each earlier echo edit effect either element elif else elsewhere
email embed embedded empty en enable encode encoding end ends engine engineering engines enough ensure entire entities
entitled entity entries entry enum env environment equal equivalent err error errors etc eval even evening event
events every everyone everything exact exactly example examples except exception exceptions exclude exclusive execute
exercise exist existing exists exit expect expected explain explicit explicitly export express expression ext extend
extends extension extensions extra fact facts fail failed fails failure false family far fast faster feature features
fee feed feel feeling felt few field fields file files fill filter final find finds first fit five fix fixed flag
flags flat flight float fn folder follow following follows foo food for force fork form format forms found foundation
four free friend friends from full fully fun func function functionality functions fundamental further future gave
general generate generated generator generic get gets git give given gives global go goes going good goods google got
grant granted graph great group groups guest guide had half hand handle handler happened hard has hash have having he
head header headers height held help her here hi hidden high him his history hold holder holds home hook hope host
hotel hour house how however href html http https hub human id identifier ids if ignore image images img implement
implementation import imported in inc include included includes including independent index indirect individual info
information init initial initialize inline input insert inside install installation installed instance instead int
integer integration intended interface internal international into invalid io is isn issue issues it item items its
itself java job join json just keep keeps kept kernel key keys keyword keywords kind knew know known knows label
language large larger last late later latest law lead learn least leave leaves left legal len length less let level
lib libraries library license life like limit limitation limited line lines link linked links list listed lists little
live lives load loaded loading loads local lock log logo long longer look looked looking looks loop loss lost love low
lower machine made main major make makes making man manifest many map march mark marked marks master match material
materials math max maximum may maybe md me mean meaning means meant measured measures media medium meet member memory
merge message messages met meta metadata method methods might milk min missing mit mod mode model models modification
modifications modified modify module modules moment money month more morning most mov move moved ms msg much multiple
must my name named names namespace national native near necessarily necessary need needed needs neither nested net
network never new newer next night no nobody node non none nor normal normally not note notes nothing notice now np
null num number numbers numpy obj object objects obtain of off offer often ok okay old older on once one ones only
onto open operating operation operations opt option optional options or order org organization origin original os
other others otherwise our out output outside over override own owner package packages pad page pages pair param
parameter parameters params parent parse parser part partial particular parts party pass passed password path paths
pattern people per perform performance permission permissions permit permitted person persons pick pieces pip place
places plain plan platform please plot plugin plus pm point points policy port pos position possibility possible post
power pre preferred prefix present previous primary print prior private procedures process processes processing
product production products program programming progress project projects promote property protocol provide provided
provides public publish published pull pure purpose purposes push put py python query question questions quick raise
raised ram random range rather raw re reached read reading reads ready real really reason reasonable recall receive
received record recorded records red ref reference refused register related release released releases relevant remain
remember remove removed replace reply report reports repository represent representation reproduce request requests
require required requires res research reserved reset respect response responsible rest restriction result resulting
results ret retain return returned returns revision right rights risk role room rooms root round row rows rule rules
run running runs runtime rust safe said same sample save saved saw say says schema school scientific scope score
scores script scripts search seat second seconds section sections security see segment select self sell send sent
separate sequence server service services session set sets setting setup several sh shall share shared shares she
shell shift ship short should show shows side sign signal simple since single sit size skip small so social software
some someone something sometimes soon sorry sounds source sources space spec special specific specified specify speed
split sql src stable stack stand standard standards start started starting state stated statement states static
station status stay stays std step steps still stop storage store stored str stream strict string strings strong
struct structure stuck style sub subject submitted substantial substitute such sum summary super support supported
supports sure switch sync syntax sys system systems table tables tag tags take taken takes target task team tell
template ten term terminal terms test testing tests text texts than thank thanks that the their them theme themselves
then theory there therefore these they thing things think third this those thought thread threads three through throw
time timeout times title to today together token tokens told too took tool tools top topic tort total trace tracking
trade traffic train transaction transfer travel tree tried tries trip true trust try trying tuple turn turns tutorial
twice two txt type typed types typing undefined under union unique unit unknown unless until up update updated updates
url us usage use used useful user username users uses using utf val valid validation value values var variable
variables vector vectors verify version versions very via view virtual void wait waiting wall want wanted warning was
wasn way ways we weather web week weeks weights welcome well went were what whatever wheel when where whether which
while who whole whom whose why width will win window windows with within without woman won word words work worked
working works world worth would wrapper write writer writes writing written wrong wrote www xml yeah year years yes
yesterday yet you your zero zip
""".split()
)
