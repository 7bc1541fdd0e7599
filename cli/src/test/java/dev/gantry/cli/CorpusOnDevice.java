// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import java.nio.file.Path;
import java.util.Map;

/// Compares `gantry digest` with the verdicts of the conformance corpus on a device. The bundle
/// for GPU hosts runs this program: `CorpusOnDevice FOLDER DEVICE`. Each valid file must give the
/// reference's digests. Each invalid file must give exit code 65 and one line.
public final class CorpusOnDevice {
  /// A file with two tensors of one name, which the format forbids. The reference keeps the last
  /// tensor without an error, but Gantry refuses the file.
  private static final String REJECTED_ON_PURPOSE = "duplicate-tensor-name.safetensors";

  private CorpusOnDevice() {}

  public static void main(String[] arguments) {
    Path folder = Path.of(arguments[0]);
    Map<?, ?> verdicts = JsonTree.verdicts(folder);
    int failed = 0;
    for (Map.Entry<?, ?> verdict : verdicts.entrySet()) {
      Path file = folder.resolve((String) verdict.getKey());
      CommandLineRun run = CommandLineRun.of("digest", "--json", "--device", arguments[1], file);
      if (!agrees(
          run,
          isValid(verdict.getKey(), (Map<?, ?>) verdict.getValue()),
          (Map<?, ?>) verdict.getValue())) {
        failed++;
        System.out.println(file.getFileName() + ": " + run);
      }
    }
    System.out.printf(
        "corpus on %s: %d passed, %d failed%n", arguments[1], verdicts.size() - failed, failed);
    System.exit(failed == 0 && !verdicts.isEmpty() ? 0 : 1);
  }

  static boolean isValid(Object file, Map<?, ?> verdict) {
    return (Boolean) verdict.get("valid") && !file.equals(REJECTED_ON_PURPOSE);
  }

  private static boolean agrees(CommandLineRun run, boolean valid, Map<?, ?> verdict) {
    return valid
        ? run.exitCode() == 0
            && ((Map<?, ?>) run.json()).get("tensors").equals(verdict.get("tensors"))
        : run.exitCode() == 65 && run.out().isEmpty() && run.err().lines().count() == 1;
  }
}
