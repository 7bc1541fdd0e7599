// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// Generated weights in the layout of a large language model: BF16 matrices with small F32 vectors
/// between them in several files, and one last file that is F32 only.
///
/// @param floatFile the file that is F32 only
/// @param digests SHA-256 by tensor, of what was written
/// @param bytes of all tensors together
record DemoWeights(Path folder, Path floatFile, Map<String, String> digests, long bytes) {
  private static final long MAX_FILE_BYTES = 512_000_000;
  private static final int MIN_FILES = 4;
  private static final int TENSORS_PER_FILE = 8;
  private static final long COLUMNS = 1024;

  /// Writes the files into `folder`, and leaves them in the page cache.
  ///
  /// @param bytes how large the weights shall be, nearly
  static DemoWeights write(Path folder, long bytes) throws IOException {
    long fileBytes = Math.min(bytes / MIN_FILES, MAX_FILE_BYTES);
    int files = Math.toIntExact((bytes + fileBytes / 2) / fileBytes);
    long matrixBytes = fileBytes / TENSORS_PER_FILE;
    int layers = (files - 1) * TENSORS_PER_FILE;
    try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
      Windows windows =
          new Windows(manager, folder, matrixBytes / 2 + 2L * layers + TENSORS_PER_FILE);
      for (int i = 0; i < layers; i++) {
        windows.add("layers." + i + ".norm.weight", windows.floats, 1);
        windows.add("layers." + i + ".mlp.weight", windows.halves, matrixBytes / (2 * COLUMNS));
      }
      for (int i = 0; i < TENSORS_PER_FILE; i++) {
        windows.add("embeddings." + i, windows.floats, matrixBytes / (4 * COLUMNS));
      }
      NDList tensors = windows.tensors;
      // What the layers of one file take, so that the embeddings begin another.
      long most = tensors.stream().limit(2L * TENSORS_PER_FILE).mapToLong(DemoWeights::bytes).sum();
      WeightsWriter.builder().setFolder(folder).optFileBytes(most).build().write(tensors);
      Map<String, String> digests = new HashMap<>();
      tensors.forEach(tensor -> digests.put(tensor.getName(), sha256(tensor)));
      return new DemoWeights(
          folder,
          readOnce(folder).getLast(),
          digests,
          tensors.stream().mapToLong(DemoWeights::bytes).sum());
    }
  }

  private static long bytes(NDArray array) {
    return array.size() * array.getDataType().getNumOfBytes();
  }

  /// Brings the data files into the page cache.
  private static List<Path> readOnce(Path folder) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      List<Path> files =
          all.filter(file -> file.toString().endsWith(".safetensors")).sorted().toList();
      for (Path file : files) {
        try (InputStream in = Files.newInputStream(file)) {
          in.transferTo(OutputStream.nullOutputStream());
        }
      }
      return files;
    }
  }

  /// @throws CheckFailedException if the arrays are not all tensors, or not as they were written
  void check(NDList arrays) {
    if (arrays.size() != digests.size()) {
      throw new CheckFailedException(arrays.size() + " tensors were loaded, of " + digests.size());
    }
    for (NDArray array : arrays) {
      String digest = sha256(array);
      if (!digest.equals(digests.get(array.getName()))) {
        throw new CheckFailedException(
            "tensor '" + array.getName() + "' was not loaded as it was written: " + digest);
      }
    }
  }

  private static String sha256(NDArray array) {
    try {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      sha256.update(array.toByteBuffer(true));
      return HexFormat.of().formatHex(sha256.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  /// Tensors of random values. Each is a window on the same memory, and begins a little later than the one
  /// before: no two are the same, and all of them take little more memory than the largest.
  private static final class Windows {
    private final NDArray floats;
    private final NDArray halves;
    private final NDList tensors = new NDList();

    /// @param values how many to make of each type
    Windows(NDManager manager, Path folder, long values) throws IOException {
      floats = manager.randomNormal(new Shape(values));
      // DJL cannot make BF16; a load with a cast can.
      Path seed = folder.resolve("seed.safetensors");
      WeightsWriter.builder().setFile(seed).build().write(Map.of("seed", floats));
      try (Weights weights = Weights.open(seed)) {
        LoadOptions cast = LoadOptions.builder().optCast(DataType.BFLOAT16).build();
        halves = weights.load(manager, cast).singletonOrThrow();
      }
      Files.delete(seed);
    }

    void add(String name, NDArray values, long rows) {
      NDArray window =
          values.get(new NDIndex("{}:{}", tensors.size(), tensors.size() + rows * COLUMNS));
      NDArray tensor = rows == 1 ? window : window.reshape(rows, COLUMNS);
      tensor.setName(name);
      tensors.add(tensor);
    }
  }
}
