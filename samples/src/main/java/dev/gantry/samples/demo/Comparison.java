// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;
import dev.gantry.core.Transport;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.SaveRequest;
import dev.gantry.djl.Weights;
import dev.gantry.formats.checkpoint.SaveOutcome;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The demo's table: weights loaded and saved by Gantry, and one file of them by DJL's own code.
final class Comparison {
  private static final List<MemoryPoolMXBean> POOLS =
      ManagementFactory.getMemoryPoolMXBeans().stream()
          .filter(pool -> pool.getType() == MemoryType.HEAP)
          .toList();

  private final DemoWeights weights;
  private final Device device;
  private final PrintWriter out;

  /// One measured load or save.
  ///
  /// @param transport that carried the bytes
  /// @param heapBytes what the Java heap held at most, garbage included
  record Trial(String transport, double seconds, long heapBytes) {}

  private interface Measurement {
    /// @throws OutOfMemoryError if the heap is too small for DJL's code
    Trial make() throws IOException;
  }

  /// Loads arrays, and tells which transport carried their bytes.
  private interface Load {
    NDList run(NDManager manager, Consumer<Map<Transport, Long>> transports) throws IOException;
  }

  /// Saves arrays.
  private interface Save {
    /// @return the bytes by transport; empty for those that went through the heap
    Map<Transport, Long> run(Model model, NDList arrays) throws IOException;
  }

  Comparison(DemoWeights weights, Device device, PrintWriter out) {
    this.weights = weights;
    this.device = device;
    this.out = out;
  }

  /// Loads by Gantry.
  ///
  /// @param path of a file, or a folder of them
  /// @param check looks at what was loaded, off the clock
  static Trial load(Path path, Device device, Consumer<NDList> check) throws IOException {
    return load(
        device,
        check,
        (manager, transports) -> {
          try (Weights opened = Weights.open(path)) {
            LoadOptions options =
                LoadOptions.builder()
                    .optReport(report -> transports.accept(report.bytesByTransport()))
                    .build();
            return opened.load(manager, options);
          }
        });
  }

  /// Loads twice; the faster load counts.
  private static Trial load(Device device, Consumer<NDList> check, Load way) throws IOException {
    Trial best = new Trial("", Double.POSITIVE_INFINITY, 0);
    for (int run = 0; run < 2; run++) {
      try (NDManager manager = NDManager.newBaseManager(device)) {
        StringBuilder transport = new StringBuilder();
        long start = start();
        try (NDList arrays = way.run(manager, bytes -> transport.append(names(bytes)))) {
          Trial trial = trial(start, transport.isEmpty() ? "heap" : transport.toString());
          check.accept(arrays);
          best = trial.seconds() < best.seconds() ? trial : best;
        }
      }
    }
    return best;
  }

  private Trial save(Path path, Path target, Save way) throws IOException {
    try (Model model = Model.newInstance("arrays", device);
        Weights opened = Weights.open(path);
        NDList arrays = opened.load(model.getNDManager(), LoadOptions.defaults())) {
      long start = start();
      return trial(start, names(way.run(model, arrays)));
    } finally {
      remove(target);
    }
  }

  private static void remove(Path target) throws IOException {
    if (Files.exists(target)) {
      try (Stream<Path> files = Files.walk(target)) {
        for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(file);
        }
      }
    }
  }

  private static long start() {
    System.gc();
    POOLS.forEach(MemoryPoolMXBean::resetPeakUsage);
    return System.nanoTime();
  }

  private static Trial trial(long start, String transport) {
    double seconds = (System.nanoTime() - start) / 1e9;
    long heapBytes = POOLS.stream().mapToLong(pool -> pool.getPeakUsage().getUsed()).sum();
    return new Trial(transport, seconds, heapBytes);
  }

  private static String names(Map<Transport, Long> bytesByTransport) {
    return bytesByTransport.isEmpty()
        ? "heap"
        : bytesByTransport.keySet().stream()
            .map(Transport::toString)
            .sorted()
            .collect(Collectors.joining("+"));
  }

  /// Measures and prints.
  ///
  /// @param whole a load of all weights
  /// @param target a path for what is saved, which is removed again
  void print(Trial whole, Path target) throws IOException {
    Path file = weights.floatFile();
    long bytes = Files.size(file);
    String all = "all shards, " + Demo.size(weights.bytes());
    String one = "F32 shard, " + Demo.size(bytes);
    line("", "what", "by", "to", "transport", "seconds", "GB/s", "heap");
    row("load", all, "gantry", weights.bytes(), () -> whole);
    row("load", one, "gantry", bytes, () -> load(file, device, _ -> {}));
    row("load", one, "DJL's decode", bytes, () -> load(device, _ -> {}, (m, _) -> decode(file, m)));
    row(
        "save",
        all,
        "gantry",
        weights.bytes(),
        () -> save(weights.folder(), target, checkpoint(target)));
    row("save", one, "gantry", bytes, () -> save(file, target, checkpoint(target)));
    row(
        "save",
        one,
        "DJL's encode",
        bytes,
        () -> save(file, target, (_, arrays) -> encode(arrays, target)));
    out.printf(
        Locale.ROOT,
        "%nA load is the better of two, of files that were read once before.%n"
            + "A save is made once, and counts until it is on the disk, whatever happens then.%n"
            + "Heap: what the Java heap held at most, garbage included, of %s allowed.%n"
            + "DJL's code was given the F32 shard only: it does not know an index of shards, and on"
            + " BF16 its native part ends the JVM (not tried).%n",
        Demo.size(Runtime.getRuntime().maxMemory()));
    out.flush();
  }

  private void row(String verb, String what, String by, long bytes, Measurement measurement)
      throws IOException {
    String to = verb.equals("save") ? "disk" : Demo.name(device);
    try {
      Trial trial = measurement.make();
      line(
          verb,
          what,
          by,
          to,
          trial.transport(),
          String.format(Locale.ROOT, "%.3f", trial.seconds()),
          String.format(Locale.ROOT, "%.2f", bytes / 1e9 / trial.seconds()),
          Demo.size(trial.heapBytes()));
    } catch (OutOfMemoryError _) {
      String limit = Demo.size(Runtime.getRuntime().maxMemory());
      line(verb, what, by, to, "heap", "-", "-", "needs more than " + limit);
    }
  }

  private void line(Object... cells) {
    out.printf("%-4s  %-20s  %-12s  %-6s  %-9s  %-7s  %-5s  %s%n", cells);
  }

  /// Reads all data into one array of the heap.
  private static NDList decode(Path file, NDManager manager) throws IOException {
    try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
      return NDList.decode(manager, in);
    }
  }

  /// Copies each array into one of the heap, and synchronises the file.
  private static Map<Transport, Long> encode(NDList arrays, Path target) throws IOException {
    try (FileChannel channel =
            FileChannel.open(target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        OutputStream out = Channels.newOutputStream(channel)) {
      arrays.encode(out, NDList.Encoding.SAFETENSORS);
      channel.force(true);
    }
    return Map.of();
  }

  /// Saves the checkpoint of a model that has the arrays as its parameters.
  private static Save checkpoint(Path target) {
    return (model, arrays) -> {
      model.setBlock(new ArraysBlock(arrays));
      try (CheckpointSaver saver = CheckpointSaver.builder().setPath(target).build()) {
        SaveRequest request = SaveRequest.builder().setStep(1).setModel(model).build();
        return switch (saver.save(request).join()) {
          case SaveOutcome.Saved saved -> saved.bytesByTransport();
          case SaveOutcome.Skipped _ -> throw new IllegalStateException("nothing else is saved");
        };
      }
    };
  }

  /// Arrays as the parameters of a block that computes nothing.
  private static final class ArraysBlock extends AbstractBlock {
    ArraysBlock(NDList arrays) {
      for (NDArray array : arrays) {
        Parameter.Builder parameter =
            Parameter.builder().setName(array.getName()).setType(Parameter.Type.OTHER);
        addParameter(parameter.optRequiresGrad(false).build()).setArray(array);
      }
    }

    @Override
    protected NDList forwardInternal(
        ParameterStore store, NDList inputs, boolean training, PairList<String, Object> params) {
      return inputs;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
      return inputShapes;
    }
  }
}
