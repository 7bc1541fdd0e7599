// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.TensorSelection;
import dev.gantry.djl.Weights;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// Compares loads of quantised weights as they are with loads that dequantise, on DJL's default
/// device. If a Python with the package gguf is given, the bench also compares the load of each
/// tensor of a GGUF file as FLOAT32 with the package's dequantisation, both on the CPU.
final class DequantiseBench {
  private static final int TURNS = 9;
  private static final int TURNS_OF_A_TENSOR = 3;

  /// A script that dequantises the tensor that each line of its input names, and prints the
  /// seconds that this took.
  private static final String PEER =
      """
      import sys, time, numpy, gguf
      numpy.seterr(all="ignore")
      tensors = {t.name: t for t in gguf.GGUFReader(sys.argv[1]).tensors}
      for line in sys.stdin:
          t = tensors[line.strip()]
          start = time.perf_counter()
          gguf.dequantize(t.data, t.tensor_type)
          print(time.perf_counter() - start, flush=True)
      """;

  private DequantiseBench() {}

  /// @param arguments a GGUF file or a folder of weights, and optionally a Python interpreter
  static void main(String[] arguments) throws Exception {
    Path file = Path.of(arguments[0]);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(file)) {
      new Comparison(file.getFileName() + " onto " + manager.getDevice(), weights.totalBytes())
          .warm(files(file))
          .add("as it is", () -> load(weights, manager, LoadOptions.builder()))
          .add(
              "as BFLOAT16",
              () -> load(weights, manager, LoadOptions.builder().optCast(DataType.BFLOAT16)))
          .print(TURNS);
    }
    if (arguments.length > 1) {
      beside(file, arguments[1]);
    }
  }

  private static List<Path> files(Path location) throws IOException {
    try (Stream<Path> files = Files.walk(location)) {
      return files.filter(Files::isRegularFile).toList();
    }
  }

  private static void load(Weights weights, NDManager manager, LoadOptions.Builder options) {
    try (NDManager temporary = manager.newSubManager()) {
      var _ = weights.load(temporary, options.build());
    }
  }

  private static void beside(Path file, String python) throws Exception {
    Process peer =
        new ProcessBuilder(python, "-c", PEER, file.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try (NDManager manager = NDManager.newBaseManager(ai.djl.Device.cpu());
        Weights weights = Weights.open(file);
        PrintWriter asked = new PrintWriter(peer.outputWriter(), true);
        BufferedReader answers = peer.inputReader()) {
      for (var tensor : weights.tensors().values()) {
        TensorSelection one = TensorSelection.names(List.of(tensor.name()));
        new Comparison(tensor.name(), tensor.bytes())
            .warm(List.of(file))
            .addTimed(
                "gguf",
                () -> {
                  asked.println(tensor.name());
                  String answer = answers.readLine();
                  if (answer == null) {
                    throw new IOException(python + " has ended");
                  }
                  return Double.parseDouble(answer);
                })
            .add(
                "load as FLOAT32",
                () ->
                    load(
                        weights,
                        manager,
                        LoadOptions.builder().optSelection(one).optCast(DataType.FLOAT32)))
            .print(TURNS_OF_A_TENSOR);
      }
    } finally {
      peer.destroy();
    }
  }
}
