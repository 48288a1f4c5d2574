"""Two more styles: a translator with a module for each head and masks that are added, and a language
model with rotary positions and fewer heads of keys. Their faults are of kinds that no other model has,
or that other models have once."""
import math

import torch
import torch.nn.functional as F
from torch import nn

V,D,H=60,32,4


class Head(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.wq=nn.Linear(D,D//H); s.wk=nn.Linear(D,D//H); s.wv=nn.Linear(D,D//H)
    def forward(s,q,k,v,bias):
        Q,K,Vv=s.wq(q),s.wk(k),s.wv(v)
        if s.f=="k dropped softmax": return Vv.mean(1,keepdim=True).expand_as(Q)
        e=torch.bmm(Q,K.transpose(1,2))/math.sqrt(D//H)
        if bias is not None and s.f!="bias times": e=e+bias
        if s.f=="bias times": e=e*(bias==0)
        w=F.softmax(e,-1)
        return torch.bmm(w,Vv)
class MHA(nn.Module):
    def __init__(s,f): super().__init__(); s.heads=nn.ModuleList([Head(f) for _ in range(H)]); s.o=nn.Linear(D,D)
    def forward(s,q,k,v,b): return s.o(torch.cat([h(q,k,v,b) for h in s.heads],-1))
class Enc(nn.Module):
    def __init__(s,f): super().__init__(); s.a=MHA(f); s.n1=nn.LayerNorm(D); s.n2=nn.LayerNorm(D); s.ff=nn.Sequential(nn.Linear(D,48),nn.ReLU(),nn.Linear(48,D)); s.f=f
    def forward(s,x,b):
        x=s.n1(x+s.a(x,x,x,b)); return s.n2(x+s.ff(x))
class Dec(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.a=MHA(f); s.c=MHA(""); s.n1=nn.LayerNorm(D); s.n2=nn.LayerNorm(D); s.n3=nn.LayerNorm(D); s.ff=nn.Sequential(nn.Linear(D,48),nn.ReLU(),nn.Linear(48,D))
    def forward(s,x,m,b,cb):
        x=s.n1(x+s.a(x,x,x,b))
        x=s.n2(x+s.c(x,x,x,b) if s.f=="cross self" else x+s.c(x,m,m,cb))
        return s.n3(x+s.ff(x))
class Net(nn.Module):
    def __init__(s,f=""):
        super().__init__(); s.f=f; s.padding_idx=0
        s.src_emb=nn.Embedding(V,D,padding_idx=0); s.trg_emb=nn.Embedding(V,D,padding_idx=0); s.pos_emb=nn.Embedding(128,D)
        for e in (s.src_emb,s.trg_emb,s.pos_emb): nn.init.normal_(e.weight,std=.5)
        s.encs=nn.ModuleList(Enc(f) for _ in range(2)); s.decs=nn.ModuleList(Dec(f) for _ in range(2)); s.proj=nn.Linear(D,V)
    def p(s,x):
        n=x.shape[1]; pos=torch.arange(n)
        if s.f=="pos reversed": pos=pos.flip(0)
        if s.f=="pos normed": pos=(pos*100//n)
        return s.pos_emb(pos)
    def forward(s,source,target):
        f=s.f; n,t=source.shape[1],target.shape[1]
        pb=torch.zeros(source.shape[0],1,n).masked_fill((source==0)[:,None],float("-inf"))
        if f=="pad wrong id": pb=torch.zeros(source.shape[0],1,n).masked_fill((source==3)[:,None],-1e9)
        cb=torch.full((t,t),float("-inf")).triu(1)[None]
        if f=="first row only": cb=cb[:,:1].expand(1,t,t)
        x=s.src_emb(source)+s.p(source)
        for l in s.encs: x=l(x,pb)
        y=s.trg_emb(target)+s.p(target)
        for l in s.decs: y=l(y,x,cb,pb)
        if f=="relu out": return s.proj(y).relu()
        return s.proj(y)


class Att(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.q=nn.Linear(D,D,bias=False); s.kv=nn.Linear(D,D,bias=False); s.o=nn.Linear(D,D,bias=False)
    def forward(s,x,start=0):
        f=s.f; B,T,_=x.shape; d=D//H
        q=s.q(x); k,v=s.kv(x).chunk(2,-1)
        q=q.view(B,T,H,d).transpose(1,2)
        k=k.view(B,T,H//2,d).transpose(1,2); v=v.view(B,T,H//2,d).transpose(1,2)
        inv=1/(10000**(torch.arange(0,d,2)/d)); a=torch.outer(torch.arange(T),inv).to(x.dtype)
        def rot(t,a):
            t1,t2=t[...,0::2],t[...,1::2]; return torch.stack([t1*a.cos()-t2*a.sin(),t1*a.sin()+t2*a.cos()],-1).flatten(-2)
        if f!="no rope": q,k=rot(q,a),rot(k,a)
        k,v=k.repeat_interleave(2,1),v.repeat_interleave(2,1)
        s_=q@k.mT*d**-.5
        m=torch.ones(T,T,dtype=torch.bool).tril()
        if f=="mask fixed": m=torch.ones(128,128,dtype=torch.bool).tril()[-T:,-T:].flip(0)
        if f=="mask last col": m=m|(torch.arange(T)==T-1)
        if f=="sdpa layout": y=F.scaled_dot_product_attention(q.transpose(1,2),k.transpose(1,2),v.transpose(1,2),is_causal=True).transpose(1,2)
        else:
            if f=="mul": s_=s_*m
            elif f=="softmax then mask renorm": pass
            else: s_=s_.masked_fill(~m,-torch.inf)
            if f=="log": w=F.log_softmax(s_.nan_to_num(neginf=-1e4),-1)
            elif f=="softmax then mask renorm": w=s_.softmax(-1)*m; w=w/w.sum(-1,keepdim=True)
            else: w=s_.softmax(-1)
            y=w.transpose(-1,-2)@v if f=="weights transposed" else w@v
        if f=="join only": y=y.reshape(B,T,D)
        else: y=y.transpose(1,2).reshape(B,T,D)
        return s.o(y)
class Block(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.n1=nn.RMSNorm(D); s.n2=nn.RMSNorm(D); s.a=Att(f); s.up=nn.Linear(D,96); s.down=nn.Linear(96,D)
    def forward(s,x):
        if s.f=="bn":
            x=x+s.a(F.batch_norm(x.transpose(1,2),None,None,training=True).transpose(1,2))
        elif s.f=="norm all": x=x+s.a((x-x.mean())/x.std())
        elif s.f=="inplace": h=s.n1(x); x+= s.a(h)
        else: x=x+s.a(s.n1(x))
        if s.f=="conv": x=x+F.avg_pool1d(x.transpose(1,2),3,1,1).transpose(1,2)
        return x+s.down(F.silu(s.up(s.n2(x))))
class LM(nn.Module):
    def __init__(s,f=""):
        super().__init__(); s.f=f; s.emb=nn.Embedding(V,D); nn.init.normal_(s.emb.weight,std=.4); L=3
        s.layers=nn.ModuleList(Block(f) for _ in range(L)); s.norm=nn.RMSNorm(D); s.head=nn.Linear(D,V,bias=False)
    def forward(s,tokens):
        f=s.f; x=s.emb(tokens)
        if f=="item": x=torch.tensor(x.tolist(),dtype=x.dtype)
        for i,l in enumerate(s.layers):
            if f=="overwrite": y=l(x); continue
            if f=="break" and i==2: break
            x=l(x.data) if f=="data" else l(x)
        if f=="overwrite": x=y
        if f=="roll": x=torch.cat([x[:,1:],x[:,:1]],1)
        if f=="cummax": x=x.flip(1).cummax(1).values.flip(1)
        return s.head(s.norm(x))

PLAIN = "reads the future elsewhere"
NET = {
    "k dropped softmax": "sees the future", "bias times": "scores times the mask", "cross self": "never reads the source",
    "pos reversed": "length changes rows", "pos normed": "length changes rows", "pad wrong id": "another id for padding",
    "first row only": "reads a part of what came before", "relu out": "activation on the logits",
}
LANGUAGE = {
    "join only": "heads split without transpose", "no rope": "target without positions", "mask fixed": "causal mask with holes",
    "mask last col": "causal mask with holes", "sdpa layout": "attention over the heads", "mul": "scores times the mask",
    "log": "sees the future", "weights transposed": PLAIN, "bn": "sees the batch", "norm all": "sees the batch", "conv": PLAIN,
    "item": "weights without gradient", "overwrite": "layers not chained", "break": "last layers left out",
    "data": "weights without gradient", "roll": PLAIN, "cummax": PLAIN,
}
SOUND = ("", "softmax then mask renorm", "inplace")  # of these, right
