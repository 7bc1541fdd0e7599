"""A training in PyTorch and the same one in DJL (Training.java of the tests), on the same batches.

  python make.py FOLDER            trains 5 steps, saves FOLDER/saved by DCP, trains 5 more, writes their losses to FOLDER/losses.txt
  python make.py FOLDER from SAVED LOSSES   goes on for 5 steps from what Checkpoints.saveDcp wrote, and compares with losses, one a line
"""
import sys
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

ROWS, FEATURES = 12, 6


class JavaRandom:
    def __init__(self, seed):
        self.seed = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def next(self, bits):
        self.seed = (self.seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return self.seed >> (48 - bits)

    def next_float(self):
        return self.next(24) / float(1 << 24)

    def next_int(self, bound):
        bits = self.next(31)
        while bits - bits % bound + (bound - 1) >= 1 << 31:
            bits = self.next(31)
        return bits % bound


def batch(number):
    random = JavaRandom(number)
    features = [random.next_float() - 0.5 for _ in range(ROWS * FEATURES)]
    labels = [random.next_int(3) for _ in range(ROWS)]
    return torch.tensor(features).reshape(ROWS, FEATURES), torch.tensor(labels)


def training():
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 10), torch.nn.BatchNorm1d(10), torch.nn.ReLU(), torch.nn.Linear(10, 3))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def steps(model, optimizer, first, last):
    losses = []
    for number in range(first, last):
        features, labels = batch(number)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(features), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


folder = sys.argv[1]
model, optimizer = training()
if len(sys.argv) == 2:
    steps(model, optimizer, 0, 5)
    of_model, of_optimizer = get_state_dict(model, optimizer)
    dcp.save({"model": of_model, "optimizer": of_optimizer, "epoch": 2}, checkpoint_id=folder + "/saved", no_dist=True)
    with open(folder + "/losses.txt", "w") as out:
        out.writelines(f"{loss!r}\n" for loss in steps(model, optimizer, 5, 10))
else:
    of_model, of_optimizer = get_state_dict(model, optimizer)
    state = {"model": of_model, "optimizer": of_optimizer, "epoch": 0}
    dcp.load(state, checkpoint_id=sys.argv[3], planner=DefaultLoadPlanner(allow_partial_load=True), no_dist=True)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    here = steps(model, optimizer, 5, 10)
    there = [float(line) for line in open(sys.argv[4])]
    print("epoch", state["epoch"], "\nhere ", here, "\nthere", there)
    print("largest difference", max(abs(a - b) for a, b in zip(here, there)))
