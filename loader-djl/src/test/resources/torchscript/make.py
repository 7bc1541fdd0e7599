# SPDX-License-Identifier: Apache-2.0
# Makes net.pt and frozen.pt, and in expected.json other weights and what PyTorch answers with them.
import json
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 5)
        self.norm = torch.nn.LayerNorm(5)
        self.head = torch.nn.Linear(5, 3)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.fc1(x))))


torch.manual_seed(7)
first = Net().eval()
other = Net().eval()
with torch.no_grad():
    for norm in (first.norm, other.norm):
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.uniform_(-1, 1)
inputs = torch.arange(8.0).reshape(2, 4) / 4 - 1
torch.jit.script(first).save("net.pt")
torch.jit.freeze(torch.jit.script(first)).save("frozen.pt")
with open("expected.json", "w") as out:
    json.dump(
        {
            "inputs": inputs.tolist(),
            "before": first(inputs).tolist(),
            "after": other(inputs).tolist(),
            "weights": {
                name: {"shape": list(value.shape), "values": value.flatten().tolist()}
                for name, value in other.state_dict().items()
            },
        },
        out,
        indent=1,
    )
