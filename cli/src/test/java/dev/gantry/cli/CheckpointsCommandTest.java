// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class CheckpointsCommandTest {
  @TempDir private Path run;

  /// Saves a checkpoint for each step. The loss falls with the step, and the tensors' values
  /// depend on the step.
  static void save(Path folder, long... steps) {
    try (GantrySession session = GantrySession.open();
        CheckpointStore store = CheckpointStore.open(session, folder, Retention.ALL, 1 << 20)) {
      for (long step : steps) {
        var _ = store.save(unsaved(step), WriteOptions.defaults());
      }
    }
  }

  private static UnsavedCheckpoint unsaved(long step) {
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", List.of(tensor("weight", step, 1000), tensor("bias", 1, 10)));
    groups.put("optimizer", List.of(tensor("means/weight", step, 1000)));
    return new UnsavedCheckpoint(
        step, groups, Map.of(), Map.of("loss", 10.0 / step), Map.of("by", "a test"));
  }

  private static NewTensor tensor(String name, long value, int length) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * length).order(ByteOrder.LITTLE_ENDIAN);
    IntStream.range(0, length).forEach(i -> bytes.putFloat((float) value + i));
    return new NewTensor(
        name,
        DType.F32,
        TensorShape.of(length),
        new Memory.OnHost(MemorySegment.ofArray(bytes.array())));
  }

  private Path step(long step) {
    return run.resolve("gantry-step-" + step);
  }

  private static void flip(Path file, long fromEnd) throws IOException {
    try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
      bytes.seek(bytes.length() - fromEnd);
      int before = bytes.read();
      bytes.seek(bytes.length() - fromEnd);
      bytes.write(before ^ 1);
    }
  }

  private List<?> rows(Object... options) {
    Object[] all =
        Stream.concat(Stream.of("checkpoints", "list", "--json", run), Stream.of(options))
            .toArray();
    return (List<?>) TestSamples.json(TestSamples.run(all)).get("checkpoints");
  }

  private static Object of(Object row, String member) {
    return ((Map<?, ?>) row).get(member);
  }

  @Test
  void listShowsWhatIsCompleteAndWhatIsNot() throws IOException {
    save(run, 1, 2, 3, 4);
    save(run, 4);
    Files.createDirectory(step(9));
    Files.delete(step(1).resolve("optimizer.safetensors"));
    flip(step(2).resolve("manifest.json"), 10);
    List<?> rows = rows("--keep-best", 1, "--metric", "loss", "--goal", "minimize");
    assertThat(rows)
        .extracting(row -> of(row, "name") + " " + of(row, "state"))
        .containsExactly(
            "gantry-step-3 complete",
            "gantry-step-4-5 complete",
            "gantry-step-1 damaged",
            "gantry-step-2 damaged",
            "gantry-step-9 unfinished");
    assertThat(of(rows.get(0), "kept")).isEqualTo(List.of());
    Object last = rows.get(1);
    assertThat(of(last, "tags")).isEqualTo(List.of("latest"));
    assertThat(of(last, "kept")).isEqualTo(List.of("last", "best"));
    assertThat(of(last, "metadata")).isEqualTo(Map.of("by", "a test"));
    assertThat(of(last, "metrics")).hasToString("{loss=2.5}");
    assertThat(of(last, "saved").toString()).startsWith("20").endsWith("Z");
    assertThat(((Number) of(last, "bytes")).longValue()).isGreaterThan(8040);
    assertThat(of(rows.get(2), "reason").toString())
        .contains("optimizer.safetensors: offset 0: missing-file");
    String text = TestSamples.run("checkpoints", "list", run).out();
    assertThat(text).contains("gantry-step-4-5", "latest", "unfinished", "missing-file");
    assertThat(TestSamples.run("checkpoints", "list", step(3)).out()).contains("gantry-step-3");
  }

  @Test
  void anEmptyFolderHasNone() {
    assertThat(TestSamples.run("checkpoints", "list", run).out()).isEqualTo("no checkpoints\n");
    assertThat(TestSamples.fail(66, "checkpoints", "verify", run).err()).contains("no checkpoint");
    assertThat(TestSamples.fail(66, "checkpoints", "list", run.resolve("none")).err())
        .contains("ENOENT");
    assertThat(TestSamples.fail(64, "checkpoints").err()).contains("subcommand");
    assertThat(
            TestSamples.run(
                    "checkpoints",
                    "prune",
                    run,
                    "--keep-best",
                    1,
                    "--metric",
                    "loss",
                    "--goal",
                    "minimize")
                .out())
        .isEqualTo("0 of 0 checkpoints would be removed, 0 bytes\n");
  }

  @Test
  void pruneSaysThatWhatAnUnfinishedSaveLeftIsStillThere() throws IOException {
    save(run, 1);
    Files.createDirectory(step(9));
    assertThat(TestSamples.run("checkpoints", "prune", run, "--keep-last", 1).out())
        .startsWith("would remove gantry-step-9\n0 of 1 checkpoints would be removed, 0 bytes")
        .endsWith("; nothing has changed: --yes removes them\n");
    assertThat(step(9)).exists();
  }

  @Test
  void verifyNamesEachDamagedFile() throws IOException {
    save(run, 1, 2, 3);
    assertThat(TestSamples.run("checkpoints", "verify", run).out().lines())
        .hasSize(3)
        .allMatch(line -> line.matches("gantry-step-[123]: whole, 4 files, [0-9,]+ bytes"));
    // The damage is in a tensor's value, in a header, and at a file's end.
    flip(step(1).resolve("model.safetensors"), 1);
    flip(step(2).resolve("model.safetensors"), 4100);
    try (RandomAccessFile file =
        new RandomAccessFile(step(2).resolve("optimizer.safetensors").toFile(), "rw")) {
      file.setLength(100);
    }
    CommandLineRun run = CommandLineRun.of("checkpoints", "verify", this.run);
    assertThat(run.exitCode()).isEqualTo(65);
    assertThat(run.out()).startsWith("gantry-step-3: whole").hasLineCount(1);
    assertThat(run.err().lines().toList())
        .hasSize(3)
        .satisfiesExactly(
            line ->
                assertThat(line)
                    .startsWith("gantry: " + step(1).resolve("model.safetensors") + ": offset ")
                    .contains("checksum-mismatch: tensor '"),
            line -> assertThat(line).contains("step-2/model.safetensors: offset "),
            line ->
                assertThat(line).contains("step-2/optimizer.safetensors: offset 100: wrong-si"));
    Object document = CommandLineRun.of("checkpoints", "verify", "--json", this.run).json();
    assertThat((List<?>) of(document, "checkpoints"))
        .extracting(each -> ((List<?>) of(each, "damaged")).size())
        .containsExactly(1, 2, 0);
    assertThat(CommandLineRun.of("checkpoints", "verify", step(3)).exitCode()).isZero();
    flip(step(3).resolve("manifest.json"), 10);
    assertThat(CommandLineRun.of("checkpoints", "verify", step(3)).err())
        .hasLineCount(1)
        .contains("manifest.json: offset ");
  }

  @Test
  void pruneSaysWhatItWouldRemoveAndRemovesOnlyWithYes() throws IOException {
    save(run, 1, 2, 3, 4, 5);
    Files.createDirectory(step(9));
    Path mine = Files.writeString(step(1).resolve("notes.txt"), "mine");
    Path other = Files.createDirectory(run.resolve("other"));
    // A damaged checkpoint does not count for the rules, and is not removed.
    Files.delete(step(5).resolve("model.safetensors"));
    String[] rules = {"--keep-last", "1", "--keep-every", "3"};
    CommandLineRun dry =
        TestSamples.run("checkpoints", "prune", run, rules[0], rules[1], rules[2], rules[3]);
    assertThat(dry.out().lines().toList())
        .startsWith(
            "would remove gantry-step-1",
            "would remove gantry-step-2",
            "would remove gantry-step-9")
        .last()
        .asString()
        .startsWith("2 of 4 checkpoints would be removed, ")
        .endsWith("nothing has changed: --yes removes them");
    assertThat(step(1).resolve("manifest.json")).exists();
    CommandLineRun done =
        TestSamples.run(
            "checkpoints", "prune", "--yes", "--json", run, rules[0], rules[1], rules[2], rules[3]);
    Map<?, ?> report = TestSamples.json(done);
    assertThat(report.get("removed")).isEqualTo(List.of("gantry-step-1", "gantry-step-2"));
    assertThat(report.get("done")).isEqualTo(true);
    assertThat((List<?>) report.get("kept"))
        .extracting(row -> of(row, "name"))
        .containsExactly("gantry-step-3", "gantry-step-4", "gantry-step-5");
    assertThat(mine).exists();
    assertThat(other).exists();
    assertThat(step(1)).isDirectoryNotContaining("glob:**.safetensors");
    assertThat(step(2)).doesNotExist();
    assertThat(step(9)).doesNotExist();
    assertThat(step(5)).exists();
  }

  @Test
  void pruneSaysWhatItCouldNotRemoveAndRemovesTheRest() {
    Location remote = Location.of("memory://prune-refused/run");
    try (GantrySession session = GantrySession.open();
        CheckpointStore store =
            CheckpointStore.open(
                session,
                run,
                Retention.ALL,
                1 << 20,
                Optional.of(new CheckpointStore.Remote(remote, Retention.ALL)))) {
      for (long step = 1; step <= 3; step++) {
        var _ = store.save(unsaved(step), WriteOptions.defaults());
      }
    }
    AtomicBoolean refuses = new AtomicBoolean(true);
    MemoryStore.beforeEachWrite(_ -> {
      if (refuses.getAndSet(false)) {
        throw new TransferException("remove", "x", new Failure.Remote(403, "forbidden"));
      }
    });
    try {
      CommandLineRun pruned =
          CommandLineRun.of("checkpoints", "prune", "--yes", remote, "--keep-last", 1);
      assertThat(pruned.exitCode()).isEqualTo(74);
      assertThat(pruned.out())
          .startsWith("removed gantry-step-2-2-")
          .contains("1 of 3 checkpoints removed, ");
      assertThat(pruned.err()).startsWith("gantry: remove failed: x: status 403").hasLineCount(1);
    } finally {
      MemoryStore.beforeEachWrite(null);
    }
  }

  @Test
  void pruneNeedsARuleAndNoSaver() {
    save(run, 1, 2);
    assertThat(TestSamples.fail(64, "checkpoints", "prune", run).err()).contains("--keep-last N");
    assertThat(TestSamples.fail(64, "checkpoints", "prune", run, "--keep-last", 0).err())
        .contains("--keep-last must be 1 to ");
    assertThat(TestSamples.fail(64, "checkpoints", "prune", run, "--keep-every", 0).err())
        .contains("--keep-every must be at least 1 ");
    assertThat(TestSamples.fail(64, "checkpoints", "prune", run, "--keep-best", 1).err())
        .contains("must be given together");
    assertThat(
            TestSamples.fail(64, "checkpoints", "prune", run, "--keep-best", 1, "--metric", "loss")
                .err())
        .contains("must be given together");
    assertThat(
            TestSamples.fail(
                    64,
                    "checkpoints",
                    "prune",
                    run,
                    "--keep-best",
                    1,
                    "--metric",
                    "x",
                    "--goal",
                    "maximize")
                .err())
        .contains("; their metrics are loss");
    assertThat(TestSamples.fail(64, "checkpoints", "prune", step(1), "--keep-last", 1).err())
        .contains("is one checkpoint");
    try (GantrySession session = GantrySession.open();
        CheckpointStore _ = CheckpointStore.open(session, run, Retention.ALL, 1 << 20)) {
      assertThat(TestSamples.fail(64, "checkpoints", "prune", "--yes", run, "--keep-last", 1).err())
          .contains("another saver uses " + run);
    }
  }

  private static Map<?, ?> diff(int exitCode, Object... arguments) {
    Object[] all =
        Stream.concat(Stream.of("checkpoints", "diff", "--json"), Stream.of(arguments)).toArray();
    CommandLineRun run = CommandLineRun.of(all);
    assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
    return TestSamples.json(run);
  }

  @Test
  void diffComparesCheckpointsByTheirChecksums() throws IOException {
    save(run, 1, 2);
    Map<?, ?> report = diff(1, step(1), step(2));
    Map<?, ?> differences = (Map<?, ?>) report.get("differences");
    assertThat(differences.keySet())
        .extracting(Object::toString)
        .containsExactly("weight", "optimizer: means/weight");
    assertThat(of(differences.get("weight"), "change")).isEqualTo("values");
    assertThat(of(differences.get("weight"), "by")).isEqualTo("checksum");
    assertThat(of(differences.get("weight"), "maxDifference")).isNull();
    assertThat(report.get("same")).hasToString("1");
    assertThat(diff(1, "--max-difference", step(1), step(2)).toString())
        .contains("by=checksum, maxDifference=1.0");
    assertThat(diff(0, step(1), step(1)).get("same")).hasToString("3");
    // A copy outside its checkpoint has no recorded checksums, so its bytes are read.
    Path copy = run.resolve("copy.safetensors");
    Files.copy(step(1).resolve("model.safetensors"), copy);
    assertThat(diff(0, copy, step(1)).get("same")).hasToString("2");
    assertThat(diff(1, "--max-difference", step(2), copy).toString())
        .contains("by=bytes, maxDifference=1.0");
    assertThat(CommandLineRun.of("checkpoints", "diff", step(1), step(2)).out())
        .isEqualTo(
            """
            ! weight  F32 [1000]
            ! optimizer: means/weight  F32 [1000]
            2 tensors differ, 1 are the same
            """);
  }

  @Test
  void diffComparesWeightsOfAnyFormat() {
    Path numpy = Path.of("..", "formats", "src", "test", "resources", "corpus", "numpy");
    Path packed = numpy.resolve("deflated.npz");
    assertThat(diff(0, packed, packed).get("differences")).isEqualTo(Map.of());
    Path copy = run.resolve("copy.safetensors");
    CommandLineRun _ = TestSamples.run("convert", packed, copy);
    assertThat(diff(0, packed, copy).get("differences")).isEqualTo(Map.of());
    CommandLineRun _ = TestSamples.run("index", copy);
    assertThat(diff(0, copy, copy).get("differences")).isEqualTo(Map.of());
    save(run, 1);
    Map<?, ?> report = diff(1, copy, step(1));
    assertThat(report.get("differences").toString()).contains("change=added", "change=removed");
    assertThat(report.get("same")).hasToString("0");
  }

  @Test
  void diffComparesTheNumbersOfOtherTypes() {
    Path first = run.resolve("first.safetensors");
    Path second = run.resolve("second.safetensors");
    write(first, "x", DType.F32, 4, 0, 0, 0x80, 0x3f);
    write(second, "x", DType.BF16, 2, 0x40, 0x3f);
    Map<?, ?> report = diff(1, "--max-difference", first, second);
    assertThat(report.toString()).contains("change=retyped", "maxDifference=0.25");
    assertThat(CommandLineRun.of("checkpoints", "diff", first, second).out())
        .startsWith("~ x  F32 [1] -> BF16 [1]\n");
    write(first, "x", DType.U8, 1, 200);
    write(second, "x", DType.I8, 1, 200);
    assertThat(diff(1, "--max-difference", first, second).toString())
        .contains("maxDifference=256.0");
    // 2⁵³ and 2⁵³+1 are one double; the largest and the least number are 2⁶⁴-1 apart.
    write(first, "x", DType.I64, 8, 0, 0, 0, 0, 0, 0, 0x20, 0);
    write(second, "x", DType.I64, 8, 1, 0, 0, 0, 0, 0, 0x20, 0);
    assertThat(diff(1, "--max-difference", first, second).toString()).contains("maxDifference=1.0");
    write(first, "x", DType.U64, 8, 0, 0, 0, 0, 0, 0, 0x20, 0x80);
    write(second, "x", DType.U64, 8, 1, 0, 0, 0, 0, 0, 0x20, 0x80);
    assertThat(diff(1, "--max-difference", first, second).toString()).contains("maxDifference=1.0");
    write(first, "x", DType.I64, 8, 0, 0, 0, 0, 0, 0, 0, 0x80);
    write(second, "x", DType.I64, 8, 255, 255, 255, 255, 255, 255, 255, 0x7f);
    assertThat(diff(1, "--max-difference", first, second).toString())
        .contains("maxDifference=1.8446744073709552E19");
  }

  private static void write(Path file, String name, DType dtype, int width, int... values) {
    byte[] bytes = new byte[values.length];
    IntStream.range(0, values.length).forEach(i -> bytes[i] = (byte) values[i]);
    Memory memory = new Memory.OnHost(MemorySegment.ofArray(bytes));
    NewTensor tensor = new NewTensor(name, dtype, TensorShape.of(bytes.length / width), memory);
    try (GantrySession session = GantrySession.open()) {
      var _ =
          session.write(
              NewSafetensors.file(file, List.of(tensor), Map.of()).files(),
              WriteOptions.defaults());
    }
  }
}
