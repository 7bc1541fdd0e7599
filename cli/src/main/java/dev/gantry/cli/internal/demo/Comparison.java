// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import ai.djl.Device;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.cli.internal.process.TemporaryFolder;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.FileDiagnosis;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/// The demo's table: the sample weights loaded and saved by Gantry, and one file of them by DJL's own
/// code.
public final class Comparison {
  private static final String DISK = "disk";

  private final Table table =
      new Table("", "what", "by", "to", "transport", "seconds", "GB/s", "heap");
  private final SampleWeights sample;
  private final Device device;
  private final String whole;
  private final String shard;
  private final long shardBytes;
  private String cachedForGantry = "";
  private String cachedForDjl = "";

  private Comparison(SampleWeights sample, Device device) throws IOException {
    this.sample = sample;
    this.device = device;
    this.shardBytes = Files.size(sample.floatShard());
    this.whole = "all shards, " + size(sample.bytes());
    this.shard = "F32 shard, " + size(shardBytes);
  }

  /// @param loaded all of the sample
  /// @param folder for what is saved, and removed again
  public static Comparison of(SampleWeights sample, Trial loaded, Device device, Path folder)
      throws IOException {
    Comparison comparison = new Comparison(sample, device);
    comparison.loads(loaded);
    comparison.saves(folder);
    return comparison;
  }

  private void loads(Trial loaded) throws IOException {
    Path file = sample.floatShard();
    String to = name(device);
    row("load", whole, "gantry", to, loaded, sample.bytes());
    cachedForGantry = resident(file);
    row("load", shard, "gantry", to, Trial.load(file, device, _ -> {}), shardBytes);
    cachedForDjl = resident(file);
    try {
      row("load", shard, "DJL's decode", to, Trial.loadByDjl(file, device), shardBytes);
    } catch (OutOfMemoryError _) {
      outOfMemory("load", "DJL's decode", to);
    }
  }

  private void saves(Path folder) throws IOException {
    Path target = folder.resolve("saved");
    row("save", whole, "gantry", DISK, Trial.save(sample.index(), device, target), sample.bytes());
    TemporaryFolder.delete(target);
    row("save", shard, "gantry", DISK, Trial.save(sample.floatShard(), device, target), shardBytes);
    TemporaryFolder.delete(target);
    try {
      row(
          "save",
          shard,
          "DJL's encode",
          DISK,
          Trial.saveByDjl(sample.floatShard(), device, target),
          shardBytes);
    } catch (OutOfMemoryError _) {
      outOfMemory("save", "DJL's encode", DISK);
    }
    Files.deleteIfExists(target);
  }

  public void print(PrintWriter out) {
    table.print(out);
    out.println();
    out.printf(
        Locale.ROOT,
        "A load is the better of two; of the F32 shard %s lay in the page cache before gantry's,"
            + " and %s before DJL's.%n",
        cachedForGantry,
        cachedForDjl);
    out.println("A save is made once, and counts until it is on the disk, whatever happens then.");
    out.printf(
        "Heap: what the Java heap held at most, garbage included, of %s allowed.%n", heapLimit());
    out.println(
        "DJL's code was given the F32 shard only: it does not know an index of shards, and on BF16"
            + " its native part ends the JVM (not tried).");
    out.flush();
  }

  private void row(String verb, String what, String by, String to, Trial trial, long bytes) {
    table.row(
        verb,
        what,
        by,
        to,
        trial.transport(),
        String.format(Locale.ROOT, "%.3f", trial.seconds()),
        String.format(Locale.ROOT, "%.2f", bytes / 1e9 / trial.seconds()),
        size(trial.heapBytes()));
  }

  private void outOfMemory(String verb, String by, String to) {
    table.row(verb, shard, by, to, "heap", "-", "-", "needs more than " + heapLimit());
  }

  private static String heapLimit() {
    return size(Runtime.getRuntime().maxMemory());
  }

  private static String resident(Path file) {
    FileDiagnosis diagnosis =
        GantrySession.shared().diagnose(Location.of(file), dev.gantry.core.Device.HOST);
    return diagnosis.residentBytes() < 0
        ? "an unknown part"
        : Transfers.percent(diagnosis.residentBytes(), diagnosis.size());
  }

  public static String name(Device device) {
    return device.isGpu() ? "cuda:" + device.getDeviceId() : "host";
  }

  public static String size(long bytes) {
    return String.format(Locale.ROOT, "%,d MB", Math.round(bytes / 1e6));
  }
}
