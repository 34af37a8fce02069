import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;

/** A JSON number: its canonical text (the literal itself when no double can hold it). */
record Num(String text, boolean integer, boolean finite) {
    private static final int MOST_DIGITS = 17;
    private static final int PLAIN_UP_TO = 21;
    private static final int PLAIN_DOWN_TO = -6;

    static Num of(String literal) {
        double value = Double.parseDouble(literal);
        boolean finite = Double.isFinite(value);
        boolean integer = literal.chars().noneMatch(c -> c == '.' || c == 'e' || c == 'E');
        if (literal.equals("-0")) {
            return new Num("0", true, true);
        }
        return new Num(integer || !finite ? literal : text(value), integer, finite);
    }

    static Num of(long value) {
        return new Num(Long.toString(value), true, true);
    }

    boolean isLong() {
        if (!integer || text.length() > 20) {
            return false;
        }
        try {
            Long.parseLong(text);
            return true;
        } catch (NumberFormatException beyond) {
            return false;
        }
    }

    /** ECMAScript's Number::toString; Double.toString of Java 17 is not the shortest. */
    static String text(double value) {
        if (value == 0) {
            return "0";
        }
        BigDecimal shortest = shortest(Math.abs(value)).stripTrailingZeros();
        String digits = shortest.unscaledValue().toString();
        int point = digits.length() - shortest.scale();
        return (value < 0 ? "-" : "") + place(digits, point);
    }

    /** The fewest digits that read back as this double and, of those, the closest to it. */
    private static BigDecimal shortest(double value) {
        BigDecimal exact = new BigDecimal(value);
        for (int digits = 1; digits < MOST_DIGITS; digits++) {
            BigDecimal near = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN));
            if (near.doubleValue() == value) {
                return near;
            }
            RoundingMode away = near.compareTo(exact) > 0 ? RoundingMode.DOWN : RoundingMode.UP;
            BigDecimal far = exact.round(new MathContext(digits, away));
            if (far.doubleValue() == value) {
                return far;
            }
        }
        return exact.round(new MathContext(MOST_DIGITS, RoundingMode.HALF_EVEN));
    }

    private static String place(String digits, int point) {
        int count = digits.length();
        if (count <= point && point <= PLAIN_UP_TO) {
            return digits + "0".repeat(point - count);
        }
        if (0 < point && point <= PLAIN_UP_TO) {
            return digits.substring(0, point) + "." + digits.substring(point);
        }
        if (PLAIN_DOWN_TO < point && point <= 0) {
            return "0." + "0".repeat(-point) + digits;
        }
        String mantissa = count == 1 ? digits : digits.charAt(0) + "." + digits.substring(1);
        return mantissa + "e" + (point > 0 ? "+" : "-") + Math.abs(point - 1);
    }
}
