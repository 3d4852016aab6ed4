"""The small letters of two single-stroke vector fonts of A. V. Hershey (1967): `futural` and `scripts`.

The Hershey Fonts were originally created by Dr. A. V. Hershey while working at the U. S. National Bureau of Standards.
The format of the font data was originally created by James Hurt, Cognition, Inc., 900 Technology Park Drive, Billerica,
MA 01821. The data may be used by anyone for any purpose, commercial or otherwise, provided that this is said with it,
and may be converted into any format but that of the U. S. NTIS.

A letter is pairs of characters, each of which is a number by its distance from R: first its left and right edge, and
then the places x, y of its strokes, y downwards. A space and R lift the pen.
"""

PLAIN = {
    "a": "I\\XMX[ RXPVNTMQMONMPLSLUMXOZQ[T[VZXX",
    "b": "H[LFL[ RLPNNPMSMUNWPXSXUWXUZS[P[NZLX",
    "c": "I[XPVNTMQMONMPLSLUMXOZQ[T[VZXX",
    "d": "I\\XFX[ RXPVNTMQMONMPLSLUMXOZQ[T[VZXX",
    "e": "I[LSXSXQWOVNTMQMONMPLSLUMXOZQ[T[VZXX",
    "f": "MYWFUFSGRJR[ ROMVM",
    "g": "I\\XMX]W`VaTbQbOa RXPVNTMQMONMPLSLUMXOZQ[T[VZXX",
    "h": "I\\MFM[ RMQPNRMUMWNXQX[",
    "i": "NVQFRGSFREQF RRMR[",
    "j": "MWRFSGTFSERF RSMS^RaPbNb",
    "k": "IZMFM[ RWMMW RQSX[",
    "l": "NVRFR[",
    "m": "CaGMG[ RGQJNLMOMQNRQR[ RRQUNWMZM\\N]Q][",
    "n": "I\\MMM[ RMQPNRMUMWNXQX[",
    "o": "I\\QMONMPLSLUMXOZQ[T[VZXXYUYSXPVNTMQM",
    "p": "H[LMLb RLPNNPMSMUNWPXSXUWXUZS[P[NZLX",
    "q": "I\\XMXb RXPVNTMQMONMPLSLUMXOZQ[T[VZXX",
    "r": "KXOMO[ ROSPPRNTMWM",
    "s": "J[XPWNTMQMNNMPNRPSUTWUXWXXWZT[Q[NZMX",
    "t": "MYRFRWSZU[W[ ROMVM",
    "u": "I\\MMMWNZP[S[UZXW RXMX[",
    "v": "JZLMR[ RXMR[",
    "w": "G]JMN[ RRMN[ RRMV[ RZMV[",
    "x": "J[MMX[ RXMM[",
    "y": "JZLMR[ RXMR[P_NaLbKb",
    "z": "J[XMM[ RMMXM RM[X[",
}

CURSIVE = {
    "a": "L\\UUTSRRPRNSMTLVLXMZO[Q[SZTXVRUWUZV[W[YZZY\\V",
    "b": "M[MVOSRNSLTITGSFQGPIOMNTNZO[P[RZTXUUURVVWWYW[V",
    "c": "MXTTTSSRQROSNTMVMXNZP[S[VYXV",
    "d": "L\\UUTSRRPRNSMTLVLXMZO[Q[SZTXZF RVRUWUZV[W[YZZY\\V",
    "e": "NXOYQXRWSUSSRRQROSNUNXOZQ[S[UZVYXV",
    "f": "OWOVSQUNVLWIWGVFTGSIQQNZKaJdJfKgMfNcOZP[R[TZUYWV",
    "g": "L[UUTSRRPRNSMTLVLXMZO[Q[SZTY RVRTYPdOfMgLfLdMaP^S\\U[XY[V",
    "h": "M\\MVOSRNSLTITGSFQGPIOMNSM[ RM[NXOVQSSRURVSVUUXUZV[W[YZZY\\V",
    "i": "PWSMSNTNTMSM RPVRRPXPZQ[R[TZUYWV",
    "j": "PWSMSNTNTMSM RPVRRLdKfIgHfHdIaL^O\\Q[TYWV",
    "k": "M[MVOSRNSLTITGSFQGPIOMNSM[ RM[NXOVQSSRURVSVUTVQV RQVSWTZU[V[XZYY[V",
    "l": "OWOVQSTNULVIVGUFSGRIQMPTPZQ[R[TZUYWV",
    "m": "E^EVGSIRJSJTIXH[ RIXJVLSNRPRQSQTPXO[ RPXQVSSURWRXSXUWXWZX[Y[[Z\\Y^V",
    "n": "J\\JVLSNROSOTNXM[ RNXOVQSSRURVSVUUXUZV[W[YZZY\\V",
    "o": "LZRRPRNSMTLVLXMZO[Q[SZTYUWUUTSRRQSQURWTXWXYWZV",
    "p": "KZKVMSNQMUGg RMUNSPRRRTSUUUWTYSZQ[ RMZO[R[UZWYZV",
    "q": "L[UUTSRRPRNSMTLVLXMZO[Q[SZ RVRUUSZPaOdOfPgRfScS\\U[XY[V",
    "r": "MZMVOSPQPSSSTTTVSYSZT[U[WZXYZV",
    "s": "NYNVPSQQQSSVTXTZR[ RNZP[T[VZWYYV",
    "t": "OXOVQSSO RVFPXPZQ[S[UZVYXV RPNWN",
    "u": "L[LVNRLXLZM[O[QZSXUU RVRTXTZU[V[XZYY[V",
    "v": "L[LVNRMWMZN[O[RZTXUUUR RURVVWWYW[V",
    "w": "I^LRJTIWIYJ[L[NZPX RRRPXPZQ[S[UZWXXUXR RXRYVZW\\W^V",
    "x": "JZJVLSNRPRQSQZR[U[XYZV RWSVRTRSSOZN[L[KZ",
    "y": "L[LVNRLXLZM[O[QZSXUU RVRPdOfMgLfLdMaP^S\\U[XY[V",
    "z": "LZLVNSPRRRTTTVSXQZN[P\\Q^QaPdOfMgLfLdMaP^S\\WYZV",
}
