// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.djl.WebDataset;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.webdataset.MemberField;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Measures how many pictures a second become batches of 224 x 224 U8 on DJL's default device,
/// from WebDataset archives of JPEGs in the page cache, in random order. The contenders are this
/// library, on a GPU also with libnvjpeg, and, if a Python interpreter is given, its
/// `torch.utils.data` with torchvision and its webdataset, as far as they are installed. Each has
/// as many workers as this machine has threads. Workers start before the clock does.
public final class PicturesBench {
  private static final String SCRIPT = "pictures.py";
  private static final int TURNS = 5;
  private static final int PICTURES = 2000;
  private static final int BATCH = 64;
  private static final int SIDE = 224;

  private final List<Path> archives;
  private final int pictures;
  private final int threads = Runtime.getRuntime().availableProcessors();

  private PicturesBench(List<Path> archives, int pictures) {
    this.archives = archives;
    this.pictures = pictures;
  }

  /// @param arguments the folder for the archives, a Python interpreter or `-` for none, and the
  ///     number of pictures
  public static void main(String[] arguments) throws Exception {
    int pictures = arguments.length > 2 ? Integer.parseInt(arguments[2]) : PICTURES;
    PicturesBench bench =
        new PicturesBench(NoisePictures.archives(Path.of(arguments[0]), pictures), pictures);
    System.out.println("# JPEG is decoded by " + ImageDecoding.jpegLibrary());
    ImageDecoding decoding = ImageDecoding.of(SIDE, SIDE);
    boolean beside = arguments.length > 1 && !arguments[1].equals("-");
    try (Peer peer = beside ? bench.peer(arguments[1]) : null) {
      bench.compare("train", decoding.randomResizedCrop().flip(), peer);
      bench.compare("evaluate", decoding.resizeShorterSide(256), peer);
    }
  }

  private Peer peer(String python) throws IOException {
    List<String> command =
        new ArrayList<>(List.of(python, "-c", script(), "" + threads, "" + BATCH));
    archives.forEach(archive -> command.add(archive.toString()));
    return new Peer(
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start());
  }

  private static String script() throws IOException {
    try (InputStream in =
        Objects.requireNonNull(PicturesBench.class.getResourceAsStream(SCRIPT), SCRIPT)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  /// @param how the script's name of the transform
  /// @param peer the running script; null for none
  private void compare(String how, ImageDecoding decoding, @Nullable Peer peer) throws Exception {
    long bytes = 0;
    for (Path archive : archives) {
      bytes += Files.size(archive);
    }
    Comparison comparison =
        new Comparison(how + ", " + threads + " threads", bytes).samples(pictures).warm(archives);
    Map<String, ImageDecoding> ours = new LinkedHashMap<>();
    ours.put("gantry", decoding);
    ours.put("gantry, all pixels decoded", decoding.allPixels());
    List<WebDataset> open = new ArrayList<>();
    try (NDManager manager = NDManager.newBaseManager()) {
      if (manager.getDevice().isGpu()) {
        ours.put("gantry, decoded on the GPU", decoding.onDevice());
      }
      ours.forEach((name, each) -> {
        WebDataset dataset = dataset(each);
        open.add(dataset);
        comparison.add(name, pictures, () -> epoch(dataset, manager));
      });
      if (peer != null) {
        for (String name : peer.names) {
          comparison.addTimed(name, () -> peer.seconds(name + "\t" + how, pictures));
        }
      }
      comparison.print(TURNS);
    } finally {
      open.forEach(WebDataset::close);
    }
  }

  private WebDataset dataset(ImageDecoding decoding) {
    return WebDataset.builder()
        .setPath(archives.stream().map(Path::toString).toArray(String[]::new))
        .addField(MemberField.image("jpg", decoding))
        .addField(MemberField.integer("cls"))
        .setSampling(BATCH)
        .optShuffle(42)
        .optThreads(threads)
        .build();
  }

  private static long epoch(WebDataset dataset, NDManager manager) {
    long samples = 0;
    for (Batch batch : dataset.getData(manager)) {
      samples += batch.getData().head().getShape().get(0);
      batch.close();
    }
    return samples;
  }

  /// The process that runs the script.
  private static final class Peer implements AutoCloseable {
    private final Process process;
    private final BufferedReader answers;
    private final PrintWriter asked;

    /// The names of the loaders for which the script has the packages.
    private final List<String> names;

    Peer(Process process) throws IOException {
      this.process = process;
      answers = process.inputReader();
      asked = new PrintWriter(process.outputWriter(), true);
      names = List.of(answer().split("\t", -1));
      System.out.println("# beside " + answer());
    }

    private String answer() throws IOException {
      String line = answers.readLine();
      if (line == null) {
        throw new IOException("the Python has ended");
      }
      return line;
    }

    double seconds(String question, int pictures) throws IOException {
      asked.println(question);
      String[] fields = answer().split("\t", -1);
      if (Integer.parseInt(fields[0]) != pictures) {
        throw new WrongBytesException(question + ": " + fields[0] + " pictures, not " + pictures);
      }
      return Double.parseDouble(fields[1]);
    }

    @Override
    public void close() {
      asked.close();
      process.destroy();
    }
  }
}
