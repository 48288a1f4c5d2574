"""Two more styles: a translator with a module for each head and masks that are added, and a language
model with rotary positions and fewer heads of keys. All but a few of these faults had their name at the
first run; the names *causal mask with holes*, *attention over the heads*, *scores times the mask* and
*activation on the logits* were made for them."""
import math

import torch
import torch.nn.functional as F
from torch import nn

V,D,H=60,32,4


class Head(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.wq=nn.Linear(D,D//H); s.wk=nn.Linear(D,D//H); s.wv=nn.Linear(D,D//H)
    def forward(s,q,k,v,bias):
        Q,K,Vv=s.wq(q),s.wk(k),s.wv(v)
        if s.f=="v from q" and q.shape==v.shape: Vv=s.wv(q)
        if s.f=="k dropped softmax": return Vv.mean(1,keepdim=True).expand_as(Q)
        e=torch.bmm(Q,K.transpose(1,2))/math.sqrt(D//H)
        if s.f=="scale model": e=torch.bmm(Q,K.transpose(1,2))/math.sqrt(D)
        if s.f=="scale late":
            w=F.softmax(torch.bmm(Q,K.transpose(1,2))+bias,-1)/math.sqrt(D//H)
            return torch.bmm(w,Vv)
        if bias is not None and s.f!="bias times": e=e+bias
        if s.f=="bias times": e=e*(bias==0)
        w=F.softmax(e,dim=1 if s.f=="dim1" else 0 if s.f=="dim0" else -1)
        if s.f=="drop always": w=F.dropout(w,0.2)
        return torch.bmm(w,Vv)
class MHA(nn.Module):
    def __init__(s,f): super().__init__(); s.heads=nn.ModuleList([Head(f) for _ in range(H)]); s.o=nn.Linear(D,D)
    def forward(s,q,k,v,b): return s.o(torch.cat([h(q,k,v,b) for h in s.heads],-1))
class Enc(nn.Module):
    def __init__(s,f): super().__init__(); s.a=MHA(f); s.n1=nn.LayerNorm(D); s.n2=nn.LayerNorm(D); s.ff=nn.Sequential(nn.Linear(D,48),nn.ReLU(),nn.Linear(48,D)); s.f=f
    def forward(s,x,b):
        x=s.n1(x+s.a(x,x,x,b)); return s.n2(s.ff(x) if s.f=="ff no res" else x+s.ff(x))
class Dec(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.a=MHA(f if f!="dim0" else ""); s.c=MHA(f if f in("dim1",) else ""); s.n1=nn.LayerNorm(D); s.n2=nn.LayerNorm(D); s.n3=nn.LayerNorm(D); s.ff=nn.Sequential(nn.Linear(D,48),nn.ReLU(),nn.Linear(48,D))
    def forward(s,x,m,b,cb):
        x=s.n1(x+s.a(x,x,x,b)); 
        if s.f=="cross q swapped": x=s.n2(x+s.c(m[:,:x.shape[1]],x,x,None))
        elif s.f=="cross self": x=s.n2(x+s.c(x,x,x,b))
        else: x=s.n2(x+s.c(x,m,m,cb))
        return s.n3(x+s.ff(x))
class Net(nn.Module):
    def __init__(s,f=""):
        super().__init__(); s.f=f; s.padding_idx=0
        s.src_emb=nn.Embedding(V,D,padding_idx=0); s.trg_emb=nn.Embedding(V,D,padding_idx=0); s.pos_emb=nn.Embedding(128,D)
        for e in (s.src_emb,s.trg_emb,s.pos_emb): nn.init.normal_(e.weight,std=.5)
        s.encs=nn.ModuleList(Enc(f) for _ in range(2)); s.decs=nn.ModuleList(Dec(f) for _ in range(2)); s.proj=nn.Linear(D,V)
    def p(s,x):
        n=x.shape[1]; pos=torch.arange(n)
        if s.f=="pos of batch": return s.pos_emb(torch.arange(x.shape[0]))[:,None]
        if s.f=="pos random": return s.pos_emb(torch.randint(0,128,(n,)))
        if s.f=="pos reversed": pos=pos.flip(0)
        if s.f=="pos normed": pos=(pos*100//n)
        return s.pos_emb(pos)
    def forward(s,source,target):
        f=s.f; n,t=source.shape[1],target.shape[1]
        pb=torch.zeros(source.shape[0],1,n).masked_fill((source==0)[:,None],float("-inf"))
        if f=="pad eq": pb=torch.zeros(source.shape[0],1,n).masked_fill((source!=0)[:,None],-1e9)
        if f=="pad wrong id": pb=torch.zeros(source.shape[0],1,n).masked_fill((source==3)[:,None],-1e9)
        cb=torch.full((t,t),float("-inf")).triu(1)[None]
        if f=="triu 0": cb=torch.full((t,t),float("-inf")).triu(0).nan_to_num(neginf=-1e9)[None]
        if f=="triu 2": cb=torch.full((t,t),float("-inf")).triu(2)[None]
        if f=="tril": cb=torch.full((t,t),-1e9).tril(-1)[None]
        if f=="minus ten": cb=torch.full((t,t),-5.).triu(1)[None]
        if f=="bool added": cb=torch.ones(t,t).triu(1)[None]
        if f=="first row only": cb=cb[:,:1].expand(1,t,t)
        if f=="last row for all": cb=cb[:,-1:].expand(1,t,t)
        x=s.src_emb(source)+s.p(source)
        for l in s.encs: x=l(x,pb if f!="pad only cross" else torch.zeros_like(pb))
        mem=x
        if f=="mean memory": mem=x.mean(1,keepdim=True).expand_as(x)
        if f=="memory first": mem=x[:,:1].expand_as(x)
        y=s.trg_emb(target)+(0 if f=="no tgt pos" else s.p(target))
        if f=="tgt in enc": y=y+s.encs[0](y,torch.zeros(1)).mean(1,keepdim=True)
        for l in s.decs: y=l(y,mem,cb,pb if f!="pad only enc" else torch.zeros_like(pb))
        if f=="softmaxed": return s.proj(y).softmax(-1)
        if f=="relu out": return s.proj(y).relu()
        if f=="norm seq": y=(y-y.mean(1,keepdim=True))
        if f=="shift out": y=y.roll(-1,1)
        if f=="no grad enc": pass
        return s.proj(y)


class Att(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.q=nn.Linear(D,D,bias=False); s.kv=nn.Linear(D,D,bias=False); s.o=nn.Linear(D,D,bias=False)
    def forward(s,x,start=0):
        f=s.f; B,T,_=x.shape; d=D//H
        q=s.q(x); k,v=s.kv(x).chunk(2,-1)
        if f=="split only": q=q.view(B,H,T,d)
        elif f=="split wrong order": q=q.view(B,T,d,H).permute(0,3,1,2)
        else: q=q.view(B,T,H,d).transpose(1,2)
        k=k.view(B,T,H//2,d).transpose(1,2); v=v.view(B,T,H//2,d).transpose(1,2)
        if f=="split kv": k=k.transpose(1,2).reshape(B,H//2,T,d)
        inv=1/(10000**(torch.arange(0,d,2)/d)); a=torch.outer(torch.arange(T),inv).to(x.dtype)
        if f=="rope by head": a=torch.outer(torch.arange(H),inv).to(x.dtype)[:,None,:].expand(H,T,-1)
        def rot(t,a):
            t1,t2=t[...,0::2],t[...,1::2]; return torch.stack([t1*a.cos()-t2*a.sin(),t1*a.sin()+t2*a.cos()],-1).flatten(-2)
        if f!="no rope":
            q=rot(q,a); k=rot(k,a if f!="rope by head" else a[:H//2]) if f!="rope q only" else k
        k=k.repeat_interleave(2,1) if f!="gqa tile" else k.repeat(1,2,1,1); v=v.repeat_interleave(2,1)
        s_=q@k.mT
        s_=s_*d**-.5 if f!="scale -1" else s_*d**-1
        m=torch.ones(T,T,dtype=torch.bool).tril()
        if f=="mask diag -1": m=torch.ones(T,T,dtype=torch.bool).tril(-1)
        if f=="mask fixed": m=torch.ones(128,128,dtype=torch.bool).tril()[-T:,-T:].flip(0)
        if f=="mask last col": m=m|(torch.arange(T)==T-1)
        if f=="sdpa swapped": y=F.scaled_dot_product_attention(q,k,v,attn_mask=~m|torch.eye(T,dtype=torch.bool))
        elif f=="sdpa both": y=F.scaled_dot_product_attention(k,q,v,is_causal=True)
        elif f=="sdpa noncausal": y=F.scaled_dot_product_attention(q,k,v)
        elif f=="sdpa layout": y=F.scaled_dot_product_attention(q.transpose(1,2),k.transpose(1,2),v.transpose(1,2),is_causal=True).transpose(1,2)
        else:
            if f=="fill zero": s_=s_.masked_fill(~m,0)
            elif f=="fill small": s_=s_.masked_fill(~m,1e-9)
            elif f=="fill eps": s_=s_.masked_fill(~m,-1e-9)
            elif f=="where swapped": s_=torch.where(m,torch.tensor(-torch.inf,dtype=s_.dtype),s_).masked_fill(m.all(-1)[:,None],0)
            elif f=="mul": s_=s_*m
            elif f=="add mask": s_=s_+m.to(s_)*-1e9
            elif f=="softmax then mask renorm": pass
            else: s_=s_.masked_fill(~m,-torch.inf)
            if f=="axis none": w=F.softmax(s_)
            elif f=="log": w=F.log_softmax(s_.nan_to_num(neginf=-1e4),-1)
            elif f=="sigmoid": w=torch.sigmoid(s_)
            elif f=="softmax then mask renorm": w=s_.softmax(-1)*m; w=w/w.sum(-1,keepdim=True)
            else: w=s_.softmax(-1)
            if f=="drop F": w=F.dropout(w)
            y=w.transpose(-1,-2)@v if f=="weights transposed" else w@v
        if f=="join only": y=y.reshape(B,T,D)
        elif f=="join flat": y=y.transpose(1,3).reshape(B,T,D) if T==d else y.permute(0,2,3,1).reshape(B,T,D)
        else: y=y.transpose(1,2).reshape(B,T,D)
        return s.o(y)
class Block(nn.Module):
    def __init__(s,f): super().__init__(); s.f=f; s.n1=nn.RMSNorm(D); s.n2=nn.RMSNorm(D); s.a=Att(f); s.up=nn.Linear(D,96); s.down=nn.Linear(96,D)
    def forward(s,x):
        if s.f=="bn":
            x=x+s.a(F.batch_norm(x.transpose(1,2),None,None,training=True).transpose(1,2))
        elif s.f=="norm all": x=x+s.a((x-x.mean())/x.std())
        elif s.f=="norm after": x=s.n1(s.a(x))
        elif s.f=="inplace": h=s.n1(x); x+= s.a(h)
        else: x=x+s.a(s.n1(x))
        if s.f=="conv": x=x+F.avg_pool1d(x.transpose(1,2),3,1,1).transpose(1,2)
        return x+s.down(F.silu(s.up(s.n2(x))))
class LM(nn.Module):
    def __init__(s,f=""):
        super().__init__(); s.f=f; s.emb=nn.Embedding(V,D); nn.init.normal_(s.emb.weight,std=.4); L=3
        s.layers=nn.ModuleList(Block(f) for _ in range(L)); s.norm=nn.RMSNorm(D); s.head=nn.Linear(D,V,bias=False)
        if f=="dict": del s.layers; object.__setattr__(s,"layers",{i:Block("") for i in range(L)})
        if f=="frozen emb": s.emb.weight.requires_grad_(False)
    def forward(s,tokens):
        f=s.f; x=s.emb(tokens)
        if f=="item": x=torch.tensor(x.tolist(),dtype=x.dtype)
        if f=="no grad":
            with torch.no_grad(): 
                for l in s.layers: x=l(x)
        else:
            outs=[]
            for i,l in enumerate(s.layers if f!="dict" else s.layers.values()):
                if f=="overwrite": y=l(x); continue
                if f=="same": l=s.layers[0]
                if f=="break" and i==2: break
                if f=="data": x=l(x.data)
                else: x=l(x)
            if f=="overwrite": x=y
        if f=="roll": x=torch.cat([x[:,1:],x[:,:1]],1)
        if f=="cummax": x=x.flip(1).cummax(1).values.flip(1)
        return s.head(s.norm(x))

PLAIN = "reads the future elsewhere"
NET = {
    "k dropped softmax": "sees the future", "scale model": "√d_model", "scale late": "√d left out",
    "bias times": "scores times the mask", "dim1": "softmax over the wrong axis", "dim0": "softmax over the wrong axis",
    "drop always": "dropout in eval", "cross self": "never reads the source", "pos of batch": "positions by batch",
    "pos random": "random in eval", "pos reversed": "length changes rows", "pos normed": "length changes rows",
    "pad eq": "padding mask inverted", "pad wrong id": "another id for padding", "triu 0": "without the diagonal",
    "triu 2": "mask one too far", "tril": "rows for columns", "minus ten": "mask too weak", "bool added": "mask added as numbers",
    "first row only": "reads a part of what came before", "last row for all": "no causal mask",
    "pad only cross": "encoder sees padding", "pad only enc": "cross-attention sees padding", "no tgt pos": "target without positions",
    "tgt in enc": PLAIN, "softmaxed": "returns probabilities", "relu out": "activation on the logits", "norm seq": PLAIN, "shift out": PLAIN,
    "cross q swapped": "sees the future",
}
LANGUAGE = {
    "split only": "heads split without transpose", "join only": "heads split without transpose", "split kv": PLAIN,
    "rope by head": "target without positions", "no rope": "target without positions", "scale -1": "divided by d",
    "mask diag -1": "without the diagonal", "mask fixed": "causal mask with holes", "mask last col": "causal mask with holes",
    "sdpa swapped": "rows for columns", "sdpa noncausal": "no causal mask", "sdpa layout": "attention over the heads",
    "fill zero": "mask too weak", "fill small": "mask too weak", "fill eps": "mask too weak", "where swapped": "True for False",
    "mul": "scores times the mask", "add mask": "True for False", "axis none": "softmax over the wrong axis", "log": "sees the future",
    "drop F": "dropout in eval", "weights transposed": PLAIN, "bn": "sees the batch", "norm all": "sees the batch",
    "norm after": "residual left out", "conv": PLAIN, "dict": "layers not registered", "frozen emb": "frozen",
    "item": "weights without gradient", "no grad": "weights without gradient", "overwrite": "layers not chained",
    "break": "last layers left out", "data": "weights without gradient", "roll": PLAIN, "cummax": PLAIN,
}
SOUND = ("", "softmax then mask renorm", "inplace", "gqa tile", "split wrong order")  # of these, right
