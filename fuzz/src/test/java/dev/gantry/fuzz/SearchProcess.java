// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A JVM in which Jazzer searches some targets for some seconds. Inputs that reach new code stay
/// in `corpus/TARGET` of the folder, and the next search begins with them; inputs that break a
/// rule are written to `findings/TARGET`.
///
/// @param folder the folder of the corpora and findings
record SearchProcess(Path folder, List<Target> targets, int seconds)
    implements Callable<List<SearchProcess.Outcome>> {
  private static final int MOST_FINDINGS = 20;

  /// The most JVMs that one search starts. A JVM ends with an input that takes too much time or
  /// memory, and the next JVM continues.
  private static final int MOST_STARTS = 20;

  /// The time before the end of the search in which no further JVM is started.
  private static final int LAST_SECONDS = 10;

  private static final int TIMEOUT_SECONDS = 120;

  /// The result of the search for a target.
  ///
  /// @param corpus how many inputs reach different branches
  /// @param findings the files of inputs that break a rule
  record Outcome(Counts counts, int corpus, List<Path> findings) {}

  @Override
  public List<Outcome> call() throws Exception {
    Path own = Files.createDirectories(folder.resolve("run"));
    Path place = Files.createTempDirectory(own, targets.getFirst().name() + "-");
    Path corpus = Files.createDirectory(place.resolve("corpus"));
    Path artifacts = Files.createDirectory(place.resolve("artifacts"));
    // Searches start concurrently, but they make their seeds in one folder.
    synchronized (SearchProcess.class) {
      for (int i = 0; i < targets.size(); i++) {
        for (byte[] seed : targets.get(i).seeds().all()) {
          put(corpus, (byte) i, seed);
        }
        for (Path each : listed(corpusOf(targets.get(i)))) {
          put(corpus, (byte) i, Files.readAllBytes(each));
        }
      }
    }
    Path log = place.resolve("log");
    Path inputs = Places.create();
    try {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
      long left = seconds;
      for (int i = 0; i < MOST_STARTS && left > 0; i++) {
        run(command(place, inputs, corpus, artifacts, left), log);
        left = TimeUnit.NANOSECONDS.toSeconds(end - System.nanoTime()) - LAST_SECONDS;
      }
    } finally {
      // Jazzer ends the JVM without the shutdown hook that would delete the inputs.
      Places.delete(inputs);
    }
    return outcomes(place, corpus, artifacts, log);
  }

  private static void run(List<String> command, Path log) throws Exception {
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
            .start();
    try {
      int _ = process.waitFor();
    } finally {
      var _ = process.destroyForcibly().waitFor();
    }
  }

  private List<String> command(
      Path place, Path inputs, Path corpus, Path artifacts, long searchSeconds) {
    return Stream.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow",
            "-XX:+EnableDynamicAgentLoading",
            "-XX:+UseSerialGC",
            "-Xmx640m",
            "-Xss2m",
            "-Dai.djl.offline=true",
            "-Dgantry.parquet.seconds=5",
            "-Dgantry.project=" + System.getProperty("gantry.project", ".."),
            "-Dgantry.fuzz.targets=" + FuzzCommand.names(targets),
            "-Dgantry.fuzz.place=" + inputs,
            "-Dgantry.fuzz.counts=" + place.resolve("counts"),
            "-cp",
            System.getProperty("java.class.path"),
            "com.code_intelligence.jazzer.Jazzer",
            "--target_class=" + Search.class.getName(),
            "--instrumentation_includes=dev.gantry.**",
            "--keep_going=" + MOST_FINDINGS,
            "--reproducer_path=" + place,
            "-artifact_prefix=" + artifacts + "/",
            "-max_total_time=" + searchSeconds,
            "-timeout=" + TIMEOUT_SECONDS,
            "-rss_limit_mb=4000",
            "-max_len=" + (SeedFiles.MAX_BYTES + 1),
            "-print_final_stats=1",
            corpus.toString())
        .toList();
  }

  private List<Outcome> outcomes(Path place, Path corpus, Path artifacts, Path log)
      throws IOException {
    Path counted = place.resolve("counts");
    if (!Files.exists(counted)) {
      throw new IOException("the search of " + targets + " did not begin: see " + log);
    }
    List<Counts> counts = Files.readAllLines(counted).stream().map(Counts::of).toList();
    for (Path each : listed(corpus)) {
      byte[] input = Files.readAllBytes(each);
      if (input.length > 0) {
        put(Files.createDirectories(corpusOf(ofInput(input))), input);
      }
    }
    List<List<Path>> findings = new ArrayList<>();
    targets.forEach(_ -> findings.add(new ArrayList<>()));
    for (Path each : listed(artifacts)) {
      byte[] input = Files.readAllBytes(each);
      if (input.length > 0 && !each.getFileName().toString().startsWith("slow-unit")) {
        Target target = ofInput(input);
        Path to = Files.createDirectories(folder.resolve("findings").resolve(target.name()));
        findings.get(targets.indexOf(target)).add(put(to, input));
      }
    }
    List<Outcome> outcomes = new ArrayList<>();
    for (int i = 0; i < targets.size(); i++) {
      outcomes.add(
          new Outcome(counts.get(i), listed(corpusOf(targets.get(i))).size(), findings.get(i)));
    }
    return outcomes;
  }

  private Target ofInput(byte[] input) {
    return targets.get((input[0] & 0xff) % targets.size());
  }

  private Path corpusOf(Target target) {
    return folder.resolve("corpus").resolve(target.name());
  }

  private static List<Path> listed(Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    try (Stream<Path> files = Files.list(folder)) {
      return files.sorted().collect(Collectors.toList());
    }
  }

  /// Writes an input without its first byte to a file named by its hash.
  private static Path put(Path folder, byte[] input) throws IOException {
    byte[] own = Arrays.copyOfRange(input, 1, input.length);
    return Files.write(folder.resolve(hash(own)), own);
  }

  private static void put(Path folder, byte target, byte[] input) throws IOException {
    byte[] all = new byte[input.length + 1];
    all[0] = target;
    System.arraycopy(input, 0, all, 1, input.length);
    Path _ = Files.write(folder.resolve(hash(all)), all);
  }

  private static String hash(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-1").digest(bytes));
    } catch (java.security.NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
