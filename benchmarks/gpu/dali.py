"""Reads WebDataset archives of JPEGs to batches of uint8 on the first GPU with NVIDIA's DALI, with the transforms of Measure pictures, and
prints pictures a second: dali.py THREADS ARCHIVE...
"""
import statistics
import sys
import time

BATCH, SIDE, TURNS = 64, 224, 5


def main():
    try:
        from nvidia.dali import __version__, fn, pipeline_def
    except ImportError as absent:
        print("no DALI:", absent)
        return

    @pipeline_def(batch_size=BATCH, num_threads=int(sys.argv[1]), device_id=0)
    def pipeline(train):
        jpegs, labels = fn.readers.webdataset(
            paths=sys.argv[2:], ext=["jpg", "cls"], random_shuffle=True, initial_fill=500, name="reader")
        if train:
            pictures = fn.decoders.image_random_crop(
                jpegs, device="mixed", random_area=[0.08, 1], random_aspect_ratio=[3 / 4, 4 / 3])
            pictures = fn.resize(pictures, size=[SIDE, SIDE])
            pictures = fn.flip(pictures, horizontal=fn.random.coin_flip())
        else:
            pictures = fn.decoders.image(jpegs, device="mixed")
            pictures = fn.crop(fn.resize(pictures, resize_shorter=256), crop=(SIDE, SIDE))
        return pictures, labels

    for how in ("train", "evaluate"):
        made = pipeline(train=how == "train")
        made.build()
        batches = made.epoch_size("reader") // BATCH
        rates = []
        for _ in range(TURNS + 1):
            start = time.perf_counter()
            for _ in range(batches):
                made.run()
            rates.append(batches * BATCH / (time.perf_counter() - start))
        # The first turn compiles and allocates, so it does not count.
        counted = rates[1:]
        print(f"= {how}\tDALI {__version__}\t{statistics.median(counted):,.0f} pictures/s"
              f" ({min(counted):,.0f}-{max(counted):,.0f})")


main()
