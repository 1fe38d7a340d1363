"""The thousand most frequent words of English, and the small words of four other languages, the most frequent first.

By these, and until its own lessons outweigh them, a young bank knows which words of a task say little. The order of the
English ones is that of the vocabulary of BERT (Apache-2.0), which all-MiniLM-L6-v2 shares.
"""

ENGLISH = """
the of and in to was he is as for on with that it his by at from her she you had an were but be this are not my they
one which or have him me first all also their has up who out been when after there into new two its time would no
what about said we over then other so more can if like back them only some could where just during before do made
school through than now years most world may between down well three year while will later city under around did
such being used state people part know against your many second university both national these don known off way
until re how even get head didn team american because de born united film since still long work south us became any
high again day family see right man eyes house season war states including took life north same each called name
much place however go four group another found won area here going away series left home music best make hand number
company several never last john very album take end good too following released game played little began district
old want those side held own early county ll league use west face think government march came small general town
june line based something september thought looked along international air july club went january october our august
april york few east show member college father public come men five set station church next former november room
party located december age got system let love though every look song water century without body black night within
great women single ve building large population river named band white started once should service top built british
open death king moved local times children february book why door need president order final road wasn although due
major died village third knew asked turned st wanted say together received main son served different behind himself
felt members power football law voice play near park history having saw mother army point front help english street
art late hands games award young put published country division across told often ever french london center six red
led days include light find tell among species really according central half form original gave office making enough
lost full opened must included live given german player run business woman community cup might million land court
development short round ii km seen class story always become sure research almost director council la career things
using island couldn car close force better free support control field students education married nothing worked
others record big inside level anything continued give james military established non returned feel does title
written thing feet william far co association hard already championship human western department hall role various
production heart living fire version television royal produced working act case society region present radio period
looking least total keep england wife program per brother mind special am works soon political george services taken
created further able reached david union joined upon done important social information either appeared position
ground lead rock dark election board france hair course arms site police girl instead real sound words moment
someone summer project announced san less wrote past followed blue founded al finally india taking records america
design considered northern god stop battle toward european outside described track today playing language call heard
professional low australia miles california win yet green trying blood southern science maybe everything match
square mouth video race recorded leave above daughter points space museum change middle common move tv post lake
seven tried elected closed ten paul minister months start chief return canada person sea release similar modern
brought rest hit formed mr floor event doing thomas robert care killed training star week needed turn finished
railway rather news health sent example ran term michael coming currently yes forces despite gold areas stage fact
dead says popular originally germany probably developed result pulled friend stood money running mi signed word
songs child eventually met tour average teams minutes festival current deep kind decided usually eastern seemed
episode bed added table indian private charles route available idea throughout centre addition appointed style books
eight construction press mean wall friends remained schools study institute oh chinese sometimes events possible
australian type brown forward talk process food debut seat performance committee features character arts herself
else lot strong russian range hours peter arm morning dr sold quickly directed guitar china list performed media uk
players smile myself placed coach province towards wouldn leading whole boy official designed grand census europe
attack japanese henry cross getting alone action lower network wide washington japan hospital believe changed sister
hold gone sir hadn ship studies academy shot rights below base bad involved kept largest bank future especially
beginning mark movement section female magazine plan professor lord longer sat walked hill actually civil energy
model families size thus aircraft completed includes data captain fight vocals featured richard bridge fourth
officer stone hear means medical groups management self lips competition entire lived technology leaving federal
tournament bit passed hot independent awards kingdom mary spent fine doesn reported jack fall raised itself stay
true studio sports replaced paris systems saint leader theatre whose market capital parents spanish canadian earth
cut degree writing bay christian awarded natural higher bill coast provided previous senior ft valley organization
stopped onto countries parts conference queen security interest saying allowed master earlier phone matter smith
winning try happened moving campaign los breath nearly mid certain girls date italian african standing fell artist
shows deal mine industry everyone republic provide collection library student primary owned older via heavy makes
attention anyone africa stated length ended fingers command staff skin foreign opening governor okay medal kill sun
cover job introduced chest hell feeling success meet reason standard meeting novel trade source buildings rose guy
goal chapter native husband previously unit limited entered weeks producer operations mountain takes covered forced
related roman complete successful key texas
"""

OTHERS = (
    """der die und in das den zu ist nicht von mit sich auf ein eine dem des für im es ich an auch als wie bei was
    wenn aus er so wird sie noch nach einer um am einen aber einem hat nur oder war man kann mein habe sind wir
    dann""",
    """de la le les et des en un une du que est dans pour qui ne pas sur se plus par au avec ce il sont je on mais
    nous comme ou cette son ses si mon comment quand faire aux sa""",
    """de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o este sí
    porque esta cuando muy sin sobre también me hasta hay donde mi cómo""",
    """de het een en van ik te dat die in is niet op aan met als voor er maar om dan zou of wat mijn men dit zo
    door over ze zich bij ook tot je uit hij naar""",
)

COMMON = (ENGLISH, *OTHERS)
