"""What may be concluded from the visitors of two arms, and when. PURE.

The unit is the visitor: each brings one number, the mean over the visitor's own answers, because answers of one visitor
resemble each other and are no independent observations (Deng, Lu and Litz, "Trustworthy Analysis of Online A/B Tests",
WSDM 2017). Every test is two-sided; effects are treatment minus control.
"""
