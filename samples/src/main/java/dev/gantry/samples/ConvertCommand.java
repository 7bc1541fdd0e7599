package dev.gantry.samples;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.gantry.core.commit.Source;
import dev.gantry.core.commit.WriteOptions;
import dev.gantry.core.commit.WriteReport;
import dev.gantry.formats.safetensors.NewCheckpoint;
import dev.gantry.formats.safetensors.NewTensor;
import dev.gantry.formats.safetensors.SafetensorsCheckpoint;
import dev.gantry.formats.safetensors.Sharding;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `convert`: the same tensors in other files. Their bytes go from file to file through a few
/// buffers, whatever the checkpoint's size.
@Command(
    name = "convert",
    description =
        "Writes a checkpoint again, aligned: to one file, or to a folder of shards with an index.")
final class ConvertCommand implements Callable<Integer> {
  private static final String ONE_FILE = ".safetensors";

  @Spec private CommandSpec spec;

  @Parameters(
      index = "0",
      paramLabel = "IN",
      description = "A safetensors file, a folder of them, or an index.json.")
  private Path input;

  @Parameters(
      index = "1",
      paramLabel = "OUT",
      description =
          "One file where the name ends in .safetensors, else a folder without safetensors files.")
  private Path output;

  @Option(
      names = "--shard-bytes",
      paramLabel = "N",
      description = "The most bytes of tensors in one file of a folder; 5 GB by default.")
  private @Nullable Long shardBytes;

  @Option(names = "--json", description = "Print JSON.")
  private boolean json;

  @Override
  public Integer call() throws IOException {
    SafetensorsCheckpoint old = SafetensorsCheckpoint.open(input);
    checkOutput(old);
    NewCheckpoint made = layOut(old);
    try (dev.gantry.core.Gantry session = dev.gantry.core.Gantry.open();
        Progress bar = new Progress("convert", made.totalBytes())) {
      print(made.write(session, WriteOptions.defaults().withChecksums(false).withProgress(bar)));
    }
    return 0;
  }

  private NewCheckpoint layOut(SafetensorsCheckpoint old) {
    List<NewTensor> tensors =
        old.tensors().values().stream()
            .map(tensor ->
                new NewTensor(
                    tensor.name(),
                    tensor.dtype(),
                    tensor.shape(),
                    new Source.FilePart(tensor.extent())))
            .toList();
    if (isOneFile()) {
      return NewCheckpoint.file(output, tensors, old.metadata());
    }
    Sharding sharding = Sharding.defaults();
    return NewCheckpoint.folder(
        output,
        tensors,
        old.metadata(),
        shardBytes == null ? sharding : sharding.withShardBytes(shardBytes));
  }

  private boolean isOneFile() {
    return output.toString().endsWith(ONE_FILE);
  }

  private void checkOutput(SafetensorsCheckpoint old) throws IOException {
    if (isOneFile() && shardBytes != null) {
      throw usage("--shard-bytes is for a folder, but OUT is one file: " + output);
    }
    Path parent = output.toAbsolutePath().getParent();
    if (parent != null && !Files.isDirectory(parent)) {
      throw new IOException(output + ": there is no folder " + parent);
    }
    if (isOneFile() && parent != null && Files.isSameFile(parent, input)) {
      throw usage("OUT would be read as a part of IN: " + output);
    }
    for (Path file : old.files()) {
      if (Files.exists(output) && Files.isSameFile(file, output)) {
        throw usage("OUT is a file of IN: " + output);
      }
    }
  }

  private ParameterException usage(String message) {
    return new ParameterException(spec.commandLine(), message);
  }

  private void print(WriteReport report) {
    PrintWriter out = spec.commandLine().getOut();
    double seconds = report.elapsed().toNanos() / 1e9;
    if (json) {
      Json.print(out, generator -> write(report, seconds, generator));
    } else {
      out.printf(
          Locale.ROOT,
          "%s: %,d file(s), %,d bytes, durable in %.3f s, %.2f GB/s%n",
          Table.line(output.toString()),
          report.files().size(),
          report.bytes(),
          seconds,
          report.gigabytesPerSecond());
      out.flush();
    }
  }

  private static void write(WriteReport report, double seconds, JsonGenerator json)
      throws IOException {
    json.writeStartObject();
    json.writeArrayFieldStart("files");
    for (WriteReport.FileReport file : report.files()) {
      json.writeStartObject();
      json.writeStringField("file", file.file().toString());
      json.writeNumberField("bytes", file.size());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeNumberField("bytes", report.bytes());
    json.writeNumberField("seconds", seconds);
    json.writeEndObject();
  }
}
