// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TextDecoderTest {
  /// Each byte is a token, as in a tokenizer of bytes.
  private static String decode(long[] bytes) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (long each : bytes) {
      all.write((int) each);
    }
    return all.toString(StandardCharsets.UTF_8);
  }

  private static List<String> pieces(TextDecoder decoder, String text) {
    List<String> pieces = new ArrayList<>();
    for (byte each : text.getBytes(StandardCharsets.UTF_8)) {
      if (!decoder.isStopped()) {
        pieces.add(decoder.add(each & 0xff));
      }
    }
    pieces.add(decoder.end());
    return pieces;
  }

  @Test
  void aCharacterOfSeveralTokensComesAsAWhole() {
    TextDecoder decoder = new TextDecoder(TextDecoderTest::decode, List.of());
    assertThat(pieces(decoder, "a😀é")).containsExactly("a", "", "", "", "😀", "", "é", "");
  }

  @Test
  void theEndOfAnAnswerComesEvenIfACharacterIsNotWhole() {
    TextDecoder decoder = new TextDecoder(TextDecoderTest::decode, List.of());
    assertThat(decoder.add('a') + decoder.add(0xf0) + decoder.end()).isEqualTo("a\uFFFD");
  }

  @Test
  void wordsKeepTheBlanksBeforeThemButTheFirst() {
    TextDecoder decoder =
        new TextDecoder(
            ids -> ids.length == 0 ? "" : " word".repeat(ids.length).substring(1), List.of());
    assertThat(decoder.add(1) + decoder.add(1) + decoder.add(1)).isEqualTo("word word word");
  }

  @Test
  void aTextThatEndsTheAnswerIsNoPartOfIt() {
    TextDecoder decoder = new TextDecoder(TextDecoderTest::decode, List.of("</s>", "\nUser:"));
    List<String> pieces = pieces(decoder, "a </b> </s> more");
    assertThat(String.join("", pieces)).isEqualTo("a </b> ");
    assertThat(pieces.subList(0, 6)).containsExactly("a", " ", "", "", "</b", ">");
    assertThat(decoder.isStopped()).isTrue();
  }

  @Test
  void theFirstOfSeveralTextsInATokenEndsTheAnswer() {
    TextDecoder decoder =
        new TextDecoder(ids -> "x<b>y<a>".repeat(ids.length), List.of("<a>", "<b>"));
    assertThat(decoder.add(1)).isEqualTo("x");
  }

  @Test
  void whatOnlyBeganToEndTheAnswerIsPartOfIt() {
    TextDecoder decoder = new TextDecoder(TextDecoderTest::decode, List.of("</s>"));
    assertThat(String.join("", pieces(decoder, "x</s"))).isEqualTo("x</s");
    assertThat(decoder.isStopped()).isFalse();
  }
}
