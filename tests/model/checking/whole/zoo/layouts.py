"""Layouts that many have copied, in the form in which one meets them. All are right."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.model.checking.whole.zoo.planted import MiniGPT, Scratch

V,D,H=40,24,4
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=5000):
        super().__init__()
        self.dropout=nn.Dropout(dropout)
        position=torch.arange(max_len).unsqueeze(1)
        div=torch.exp(torch.arange(0,d_model,2)*(-math.log(10000.0)/d_model))
        pe=torch.zeros(max_len,1,d_model); pe[:,0,0::2]=torch.sin(position*div); pe[:,0,1::2]=torch.cos(position*div)
        self.register_buffer('pe',pe)
    def forward(self,x): return self.dropout(x+self.pe[:x.size(0)])
class Seq2SeqTransformer(nn.Module):  # torchtext tutorial
    def __init__(self):
        super().__init__()
        self.transformer=nn.Transformer(D,H,2,2,32); self.generator=nn.Linear(D,V)
        self.src_tok_emb=nn.Embedding(V,D); self.tgt_tok_emb=nn.Embedding(V,D); self.positional_encoding=PositionalEncoding(D)
    def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_key_padding_mask):
        src_emb=self.positional_encoding(self.src_tok_emb(src)*math.sqrt(D)); tgt_emb=self.positional_encoding(self.tgt_tok_emb(trg)*math.sqrt(D))
        outs=self.transformer(src_emb,tgt_emb,src_mask,tgt_mask,None,src_padding_mask,tgt_padding_mask,memory_key_padding_mask)
        return self.generator(outs)
class Fairseq(nn.Module):
    def __init__(self):
        super().__init__()
        self.e=nn.Embedding(V,D,padding_idx=0); self.pos=nn.Embedding(80,D); self.t=nn.Transformer(D,H,2,2,32,batch_first=True); self.o=nn.Linear(D,V)
    def forward(self, src_tokens, src_lengths, prev_output_tokens):
        n,t=src_tokens.shape[1],prev_output_tokens.shape[1]
        pad=torch.arange(n)[None]>=src_lengths[:,None]
        h=self.t(self.e(src_tokens)+self.pos(torch.arange(n)),self.e(prev_output_tokens)+self.pos(torch.arange(t)),tgt_mask=torch.ones(t,t).triu(1).bool(),src_key_padding_mask=pad,memory_key_padding_mask=pad)
        return self.o(h),{"attn":None}
class ShiftsItself(nn.Module):
    """forward(src,tgt): reads tgt[:, :-1]"""
    def __init__(self): super().__init__(); self.f=Fairseq(); self.pad_idx=0
    def forward(self,src,tgt): return self.f(src,(src!=0).sum(1),tgt[:,:-1])[0]
class VocabSecond(nn.Module):
    def __init__(self): super().__init__(); self.f=Fairseq(); self.pad_idx=0
    def forward(self,src,tgt): return self.f(src,(src!=0).sum(1),tgt)[0].transpose(1,2)
class FlatLM(nn.Module):
    def __init__(self,bf=True):
        super().__init__(); self.tok=nn.Embedding(V,D); self.p=nn.Parameter(torch.randn(1,64,D)); self.blocks=nn.Sequential(*[nn.TransformerEncoderLayer(D,H,32,batch_first=True,norm_first=True) for _ in range(1)]); self.head=nn.Linear(D,V)
    def forward(self,x):
        b,t=x.shape; h=self.tok(x)+self.p[:,:t]; m=nn.Transformer.generate_square_subsequent_mask(t).to(h.dtype)
        for l in self.blocks: h=l(h,src_mask=m,is_causal=True)
        return self.head(h).view(b*t,V)


class Weighs(nn.Module):
    """nn.MultiheadAttention as it comes: it gives its weights, and is slower for it."""
    def __init__(self):
        super().__init__(); self.e=nn.Embedding(V,D); self.p=nn.Embedding(80,D); self.n=nn.LayerNorm(D); self.f=nn.LayerNorm(D); self.a=nn.MultiheadAttention(D,H,batch_first=True); self.o=nn.Linear(D,V)
    def forward(self,ids):
        n=ids.shape[1]; x=self.e(ids)+self.p(torch.arange(n)); h=self.n(x)
        return self.o(self.f(x+self.a(h,h,h,attn_mask=torch.ones(n,n).triu(1).bool())[0]))


class TakesAnswers(MiniGPT):
    def forward(self, idx, targets): return super().forward(idx, targets)


class LossFirst(MiniGPT):
    def forward(self, x, labels): return super().forward(x, labels)[::-1]


class TakesPosition(MiniGPT):
    def forward(self, tokens, start_pos: int): return super().forward(tokens, tokens)[0]


class TakesTargets(Scratch):
    def forward(self, inputs, targets): return super().forward(inputs, targets)


AS_THEY_ARE = (
    Fairseq, ShiftsItself, VocabSecond, TakesAnswers, LossFirst, TakesPosition, TakesTargets,
)
