typedef int fa_report_empty; /* removed with the first source */
